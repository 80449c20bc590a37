"""The total of a namespace's ResourceQuotas, by the resource names of nodes."""

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
    """The maximum of each resource that pods can request. All quotas apply, so the smallest counts.

    Quotas with scopes apply to some pods only and are ignored. A quota of limits also limits requests.
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
