"""Upper objects that others refer to and that are not there: what is told of them, and what stands for them below."""

from hansa.kube.objects import Object
from hansa.model.pair import Key
from hansa.runtime import clock

NOBODY = "nobody"  # the uid of what stands for an object that is not there
PATIENCE = 2.0  # seconds after which it is told: what is made together comes within that


def sentence(needed: Key) -> str:
    """What those are told who cannot be without it."""
    return f"{needed.resource} {needed.namespace}/{needed.name} is not there, and has to be before it can run"


def patience(upper: Object, clock: clock.Clock) -> float:
    """For how many seconds an object may yet wait for what it lacks before that is told."""
    made = upper.metadata.creation_timestamp
    return 0.0 if made is None else max(0.0, PATIENCE - (clock.wall() - made).total_seconds())


def stand_in(key: Key) -> Object:
    """Something empty, so that nobody else's is found under its name."""
    metadata = {"namespace": key.namespace, "name": key.name, "uid": NOBODY}
    return Object.of({"apiVersion": key.resource.api_version, "kind": key.resource.kind, "metadata": metadata})
