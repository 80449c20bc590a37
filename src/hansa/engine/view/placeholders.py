"""Upper objects that others refer to and that don't exist: the message about them, and what is copied instead."""

from hansa.kube.objects import NamespacedName, Object
from hansa.model.pair import Key
from hansa.runtime import clock

NO_UID = "nobody"  # the uid of a placeholder, in stamps of copies
PATIENCE = 2.0  # seconds before it is reported: objects of one manifest are created within that


def message(needed: Key) -> str:
    """The message on objects that can't run without it."""
    return f"waiting for {needed.resource.kind} {NamespacedName(needed.namespace, needed.name)}: not found"


def patience(upper: Object, clock: clock.Clock) -> float:
    """The seconds for which an object still waits before a missing reference is reported."""
    made = upper.metadata.creation_timestamp
    return 0.0 if made is None else max(0.0, PATIENCE - (clock.wall() - made).total_seconds())


def placeholder(key: Key) -> Object:
    """An empty object that keeps the name: an object of the lower cluster with that name is never used."""
    metadata = {"namespace": key.namespace, "name": key.name, "uid": NO_UID}
    return Object.of({"apiVersion": key.resource.api_version, "kind": key.resource.kind, "metadata": metadata})
