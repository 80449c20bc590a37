"""How the lives of an upper object and of its lower ones depend on each other, by kind."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from hansa.kube.objects import Object
from hansa.model import keys, placement


def _never(_obj: Object) -> bool:
    return False


def _no_status(_upper: Object) -> Mapping[str, Any]:
    return {}


def _server_default(_upper: Object | None, *, is_forced: bool) -> int | None:  # noqa: ARG001 - the type's name
    return None


class Grace(Protocol):
    """Gives a deletion grace period."""

    def __call__(self, upper: Object | None, /, *, is_forced: bool) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Lifecycle:
    """The lifecycle of one kind. The default is that of a copy: created, kept equal, deleted with its upper object."""

    # There is at most one running lower object: the next one is created when the one before is gone.
    runs_once: bool = False
    # The upper object is deleted when its lower one is, so that its owner creates another.
    ends_with_lower: bool = False
    # The upper object's deletion is completed by us when its lower ones are gone: we are its kubelet.
    completes_deletion: bool = False
    # A finalizer of the upper object: added before its first copy, removed when no copy is left.
    finalizer: str = ""
    # The lower object stays when the objects that use it are gone, until the upper one is deleted.
    outlives_users: bool = False
    # The lower object is deleted when the upper one is gone, not while that is being deleted: its content ends first.
    deleted_last: bool = False
    # Seconds for which a lower object stays after it is no longer placed: it is often placed there again.
    retention: float = 0.0
    # Names under which an object that is not ours serves as well; None if there are none.
    shares_name: Callable[[str], bool] | None = None
    # It has ended for good and never runs again, on either side.
    is_finished: Callable[[Object], bool] = _never
    # The upper object's status says that its lower one has run.
    has_run: Callable[[Object], bool] = _never
    # A last patch of the status of an upper object that is being deleted, when no lower object is left.
    final_status: Callable[[Object], Mapping[str, Any]] = _no_status
    # The deletion grace period of a lower object, by its upper one (None: that is gone, by force if `is_forced`); None
    # is the lower object's own.
    grace: Grace = _server_default

    def may_share(self, name: str) -> bool:
        """Whether an object of this name that is not ours serves as well."""
        return self.shares_name is not None and self.shares_name(name)

    def other_finalizers(self, upper: Object) -> tuple[str, ...]:
        """The finalizers of an upper object that are not ours."""
        return tuple(one for one in upper.metadata.finalizers if one != self.finalizer)


class _PodStatus(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    phase: str = ""
    start_time: str | None = None


def is_finished_pod(pod: Object) -> bool:
    """Whether a pod's containers have ended for good."""
    return pod.decode("status", _PodStatus).phase in {"Succeeded", "Failed"}


def has_pod_run(pod: Object) -> bool:
    """Whether a lower kubelet started it. A manifest copied from a pod may have the annotation, but no startTime."""
    return keys.LOWER_UID in pod.annotations and pod.decode("status", _PodStatus).start_time is not None


def final_pod_status(pod: Object) -> Mapping[str, Any]:
    """The phase Failed, for owners that hold a pod by a finalizer: a Job that counts failed pods waits for a phase."""
    if not pod.metadata.finalizers or is_finished_pod(pod):
        return {}
    return {"status": {"phase": "Failed", "reason": "Deleted", "message": "The pod was deleted and has ended."}}


def pod_grace(upper: Object | None, *, is_forced: bool) -> int | None:
    """The grace period of the upper pod, none if it is gone by force, else that of the lower pod itself.

    The API server deletes a pod that is not bound with no grace period: no user asked for that, and its lower pod may
    run already.
    """
    if upper is None:
        return 0 if is_forced else None
    given = upper.metadata.deletion_grace_period_seconds
    return None if given == 0 and not placement.node_of(upper) else given


COPY = Lifecycle()
SHARED_COPY = Lifecycle(shares_name=lambda _: True)
DATA = Lifecycle(outlives_users=True)
NAMESPACE = Lifecycle(deleted_last=True)
POD = Lifecycle(
    runs_once=True,
    ends_with_lower=True,
    completes_deletion=True,
    is_finished=is_finished_pod,
    has_run=has_pod_run,
    final_status=final_pod_status,
    grace=pod_grace,
)
