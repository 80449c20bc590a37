"""The stamp of a lower object: labels and annotations that name its upper object. Unstamped objects are not written."""

from collections.abc import Set
from dataclasses import dataclass

from hansa.kube.objects import Object
from hansa.model import keys

# Keys of the stamp. An upper object may have them too: it may be a copy itself, or be created from a copied manifest.
_OURS = frozenset({keys.UPPER, keys.UPPER_UID, keys.UPPER_NAME, keys.ROUTE, keys.CARRIED, keys.LOWER_UID})


@dataclass(frozen=True, slots=True)
class Origin:
    """The upper object that a lower one is a copy of. `upper` is the id of the upper cluster, which never changes.

    `nodes` are the virtual nodes of the route that created it: two routes may connect the same clusters.
    """

    upper: str
    uid: str
    namespace: str
    name: str
    nodes: frozenset[str] = frozenset()

    def is_other_route(self, nodes: frozenset[str]) -> bool:
        """Whether it was created by a route with other virtual nodes than these."""
        return bool(self.nodes) and bool(nodes) and self.nodes.isdisjoint(nodes)


def of(obj: Object) -> Origin | None:
    """The stamp of an object; None if it has none."""
    upper, uid = obj.labels.get(keys.UPPER), obj.annotations.get(keys.UPPER_UID)
    if not upper or not uid:
        return None
    namespace, _, name = obj.annotations.get(keys.UPPER_NAME, "").rpartition("/")
    return Origin(upper, uid, namespace, name, _keys(obj.annotations.get(keys.ROUTE, "")))


def put(obj: Object, origin: Origin) -> Object:
    """The object with the stamp, which also lists the keys of the labels and annotations that were synced down."""
    labels = {k: v for k, v in obj.labels.items() if k not in _OURS}
    annotations = {k: v for k, v in obj.annotations.items() if k not in _OURS}
    stamp = {
        keys.UPPER_UID: origin.uid,
        keys.UPPER_NAME: f"{origin.namespace}/{origin.name}",
        keys.CARRIED: f"{','.join(sorted(labels))};{','.join(sorted(annotations))}",
    }
    if origin.nodes:
        stamp[keys.ROUTE] = ",".join(sorted(origin.nodes))
    return obj.with_metadata(labels=labels | {keys.UPPER: origin.upper}, annotations=annotations | stamp)


def carried(obj: Object) -> tuple[Set[str], Set[str]]:
    """The keys of labels and of annotations that were synced down. Other keys were set in the lower cluster."""
    labels, _, annotations = obj.annotations.get(keys.CARRIED, "").partition(";")
    return _keys(labels), _keys(annotations)


def selector(upper: str = "") -> str:
    """The label selector of all copies, or of those of one upper cluster."""
    return f"{keys.UPPER}={upper}" if upper else keys.UPPER


def _keys(text: str) -> frozenset[str]:
    return frozenset(key for key in text.split(",") if key) - _OURS if text else frozenset()
