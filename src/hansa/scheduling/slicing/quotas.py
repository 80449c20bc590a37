"""What the quotas of a namespace allow in all, in the names that nodes and slices use."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from hansa.kube import objects
from hansa.kube.language import quantity
from hansa.model import requests

_PREFIXES = ("requests.", "limits.")


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    hard: Mapping[str, str] | None = None
    scopes: tuple[str, ...] | None = None
    scope_selector: dict[str, Any] | None = None


def bound(quotas: Iterable[objects.Object]) -> requests.Amounts:
    """The most of each resource that pods can ask for: every quota holds, so the smallest counts.

    A quota with scopes bounds only some of the pods and is left out. A bound of limits bounds requests, too.
    """
    least: requests.Amounts = {}
    for quota in quotas:
        spec = quota.decode("spec", _Spec)
        if spec.scopes or spec.scope_selector is not None:
            continue
        for name, text in (spec.hard or {}).items():
            resource = _resource(name)
            nano = quantity.parse(text).nano
            least[resource] = min(nano, least.get(resource, nano))
    return least


def _resource(name: str) -> str:
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name
