"""The topics that keys wait for, besides upper objects (`Key`) and clusters (by name)."""

from typing import NamedTuple

from hansa.kube.objects import NamespacedName
from hansa.kube.resource import Resource
from hansa.model.pair import Key


class ObjectRef(NamedTuple):
    """An object of one upper cluster."""

    resource: Resource
    name: NamespacedName


class LowerName(NamedTuple):
    """The name of an object in a lower cluster that is not ours."""

    cluster: str
    resource: Resource
    name: NamespacedName


class NamespaceScope(NamedTuple):
    """All upper objects of a kind in a namespace, and their copies."""

    cluster: str
    resource: Resource
    namespace: str


class NamespaceQuota(NamedTuple):
    """Quota in a namespace of a lower cluster."""

    cluster: str
    namespace: str


Topic = Key | LowerName | NamespaceScope | NamespaceQuota | str
