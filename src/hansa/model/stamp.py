"""The mark on every lower object that says which upper object it copies. What has no mark of ours is never touched."""

from dataclasses import dataclass

from hansa.kube.objects import Object
from hansa.model import keys


@dataclass(frozen=True, slots=True)
class Origin:
    """The upper object that a lower one is a copy of. `upper` is the id of the upper cluster, which never changes."""

    upper: str
    uid: str
    namespace: str
    name: str


def of(obj: Object) -> Origin | None:
    """Read the mark; None if there is none."""
    upper, uid = obj.labels.get(keys.UPPER), obj.annotations.get(keys.UPPER_UID)
    if not upper or not uid:
        return None
    namespace, _, name = obj.annotations.get(keys.UPPER_NAME, "").rpartition("/")
    return Origin(upper, uid, namespace, name)


def put(obj: Object, origin: Origin) -> Object:
    """The object with the mark, which also remembers the keys of the labels and annotations that came from above."""
    carried = ",".join(sorted({*obj.labels, *obj.annotations}))
    annotations = {
        **obj.annotations,
        keys.UPPER_UID: origin.uid,
        keys.UPPER_NAME: f"{origin.namespace}/{origin.name}",
        keys.CARRIED: carried,
    }
    return obj.with_metadata(labels={**obj.labels, keys.UPPER: origin.upper}, annotations=annotations)


def selector(upper: str) -> str:
    """The label selector of all copies of one upper cluster."""
    return f"{keys.UPPER}={upper}"
