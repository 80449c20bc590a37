"""What keys wait for, besides upper objects (`Key`) and clusters (by name)."""

from typing import NamedTuple

from hansa.kube.objects import NamespacedName
from hansa.kube.resource import Resource
from hansa.model.pair import Key


class ObjectRef(NamedTuple):
    """An object of one upper cluster."""

    resource: Resource
    name: NamespacedName


class LowerName(NamedTuple):
    """A name in a lower cluster that an object has which is not ours."""

    cluster: str
    resource: Resource
    name: NamespacedName


class NamespaceScope(NamedTuple):
    """All upper objects of a kind in a namespace, and their copies."""

    cluster: str
    resource: Resource
    namespace: str


class Room(NamedTuple):
    """Quota in a namespace of a lower cluster."""

    cluster: str
    namespace: str


Topic = Key | LowerName | NamespaceScope | Room | str
