"""How the lives of an upper object and of its lower ones depend on each other, kind by kind."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from hansa.kube.objects import Object
from hansa.model import keys


def _never(_obj: Object) -> bool:
    return False


def _no_name(_name: str) -> bool:
    return False


def _silently(_upper: Object) -> Mapping[str, Any]:
    return {}


def _its_own(_upper: Object | None) -> int | None:
    return None


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """How the lives of one kind hang together. Without a word it is a copy: made, kept alike, removed."""

    # Two lower objects of one upper one must never be: the next is made when the one before is gone.
    lives_once: bool = False
    # The upper object ends when its lower one does, so that whoever made it makes another.
    ends_with_lower: bool = False
    # The upper object, once placed, leaves when we say that its lower ones are gone: we are its kubelet.
    releases: bool = False
    # The lower object outlives those who use it; it goes with the upper one only.
    stays: bool = False
    # The lower object goes when the upper one is gone, not while it leaves: what is in it has to end before.
    leaves_last: bool = False
    # The lower object stays so many seconds after nobody needs it any more: it is often needed again.
    lingers: float = 0.0
    # Somebody else's object of the same name serves as well, if it has such a name: it is not told as a conflict.
    shares_name: Callable[[str], bool] = _no_name
    # It did what it was made for and never lives again, on either side.
    is_finished: Callable[[Object], bool] = _never
    # The upper object tells that its lower one has lived.
    was_below: Callable[[Object], bool] = _never
    # What an upper object that leaves is told when nothing of it is left below: a patch of its status, once.
    farewell: Callable[[Object], Mapping[str, Any]] = _silently
    # How many seconds a lower object has to end, from its upper one (None: it is gone); None leaves it to the server.
    grace: Callable[[Object | None], int | None] = _its_own

    @property
    def may_share(self) -> bool:
        """Whether objects that are not ours matter."""
        return self.shares_name is not _no_name


class _PodStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    phase: str = ""
    start_time: str | None = None


def is_finished_pod(pod: Object) -> bool:
    """Its containers have ended for good."""
    return pod.decode("status", _PodStatus).phase in {"Succeeded", "Failed"}


def was_pod_below(pod: Object) -> bool:
    """A kubelet below had taken it. The annotation may come from a manifest that was copied from a pod, a start not."""
    return keys.LOWER_UID in pod.annotations and pod.decode("status", _PodStatus).start_time is not None


def farewell_to_pod(pod: Object) -> Mapping[str, Any]:
    """Its end, for those who hold it by a finalizer: a Job that counts failed pods would wait for ever for a phase."""
    if not pod.metadata.finalizers or is_finished_pod(pod):
        return {}
    return {"status": {"phase": "Failed", "reason": "Deleted", "message": "The pod was deleted and has ended."}}


def grace_of_pod(upper: Object | None) -> int | None:
    """As long as the upper pod has. One that is gone while we had not released it was taken away by force."""
    return 0 if upper is None else upper.metadata.deletion_grace_period_seconds


COPY = Lifecycle()
SHARED_COPY = Lifecycle(shares_name=lambda _: True)
DATA = Lifecycle(stays=True)
NAMESPACE = Lifecycle(leaves_last=True)
POD = Lifecycle(
    lives_once=True,
    ends_with_lower=True,
    releases=True,
    is_finished=is_finished_pod,
    was_below=was_pod_below,
    farewell=farewell_to_pod,
    grace=grace_of_pod,
)
