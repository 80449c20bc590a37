"""Labels of delegates: with the prefix of the federation, so that controllers of the target do not adopt them. Pure.

`app.kubernetes.io/name` becomes `multicluster.admiralty.io/name`. The annotation no-prefix-label-regexp names labels
that keep their keys.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hansa.model import keys
from hansa.model.translation.federation import label_patterns
from hansa.model.translation.federation.label_patterns import InvalidPattern

# Labels of a proxy pod alone: the API server copies the last two from the virtual node when it is bound, and a delegate
# gets those of its own node.
_OF_PROXY: Final = frozenset({keys.HAS_FINALIZER, "topology.kubernetes.io/region", "topology.kubernetes.io/zone"})


@dataclass(frozen=True, slots=True)
class Relabeling:
    """How the keys of labels change on the way to a target."""

    kept: re.Pattern[str] | None = None  # of "key=value": labels that keep their key

    def key(self, key: str, value: str) -> str:
        """The key of a label of a delegate."""
        if self.kept is not None and self.kept.search(f"{key}={value}"):
            return key
        return f"{keys.FEDERATION}/{key.rpartition('/')[2]}"

    def labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        """The labels of a delegate. Of two keys that differ in their domain only, the one without a domain is used."""
        ordered = sorted(labels, key=lambda key: ("/" not in key, key))
        return {self.key(key, labels[key]): labels[key] for key in ordered if key not in _OF_PROXY}

    def selector(self, selector: Mapping[str, Any]) -> dict[str, Any]:
        """A LabelSelector of source pods as one of their delegates."""
        labels = {self.key(key, value): value for key, value in (selector.get("matchLabels") or {}).items()}
        expressions = [
            one | {"key": self._expression_key(one["key"], one.get("values") or [])}
            for one in selector.get("matchExpressions") or ()
        ]
        parts = {"matchLabels": labels, "matchExpressions": expressions}
        return dict(selector) | {name: part for name, part in parts.items() if part}

    def _expression_key(self, key: str, values: list[str]) -> str:
        """The key of an expression. It keeps its key if it would with each of its values."""
        wanted = {self.key(key, value) for value in values or [""]}
        return wanted.pop() if len(wanted) == 1 else self.key(key, values[0])


def of(annotations: Mapping[str, str]) -> Relabeling:
    """The relabeling for an object with these annotations. Raises InvalidPattern."""
    pattern = annotations.get(keys.NO_PREFIX, "")
    return Relabeling(label_patterns.compiled(pattern)) if pattern else Relabeling()


def check(annotations: Mapping[str, str]) -> str:
    """Why the annotation no-prefix-label-regexp is not valid; empty if it is."""
    try:
        of(annotations)
    except InvalidPattern as error:
        return str(error)
    return ""
