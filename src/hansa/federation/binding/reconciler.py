"""Reconciles proxy pods: chooses the target of each that waits, and another one if that does not take it.

The choice is one annotation: the engine creates the delegate there, binds the pod when that has a node, and deletes it
when the annotation changes. So a pod has one delegate, and the number of targets has no influence on what is written.
"""

import logging
import random as randomness
from typing import Any, Final

from hansa.control import controller
from hansa.control.event_recorder import EventType, InvolvedObject, Recorder
from hansa.control.store import Store
from hansa.federation.binding import choosing, proxy
from hansa.federation.binding.attempts import Attempts
from hansa.federation.binding.nodes import VirtualNodes
from hansa.federation.binding.proxy import ProxyRequest
from hansa.federation.binding.reserved_views import ReservedViews
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys
from hansa.model.translation.federation import source_pod
from hansa.runtime import clock
from hansa.runtime.errors import HansaError
from hansa.scheduling import pod_affinity_terms
from hansa.scheduling.verdict import Fit, Verdict

log = logging.getLogger(__name__)
# From the binding of a pod until its reservation ends: by then the target's summary counts the delegate.
SETTLE_SECONDS: Final = 3.0
# An unbound pod leaves a target that can't be used for this long. Its delegate there is deleted when that can be.
MOVE_SECONDS: Final = 15.0


class Reconciler:
    """Chooses targets. `pods` are those of the source cluster."""

    def __init__(
        self,
        pods: Store,
        client: Client,
        targets: ReservedViews,
        nodes: VirtualNodes,
        *,
        recorder: Recorder,
        clock: clock.Clock,
        random: randomness.Random,
    ) -> None:
        self._pods, self._client, self._targets, self._nodes = pods, client, targets, nodes
        self._recorder, self._clock, self._random = recorder, clock, random
        self._attempts: dict[NamespacedName, Attempts] = {}
        self._refusals: dict[Any, Verdict] = {}  # by kind of request, until something changes for the better
        self.pending: set[NamespacedName] = set()  # no target takes them now

    def load(self) -> None:
        """Reserve what the pods need that have a candidate already, before others get it."""
        for pod in list(self._pods.values()):
            try:
                if proxy.is_waiting(pod) and (candidate := pod.annotations.get(keys.CANDIDATE)):
                    self._targets.hold(pod.key, candidate, proxy.request_of(pod).delegate)
            except HansaError as error:  # its reconcile reports it
                log.debug("reservation not restored", extra={"pod": str(pod.key), "error": str(error)})

    def capacity_changed(self) -> None:
        """A pod that was refused may fit now."""
        self._refusals.clear()

    async def reconcile(self, key: NamespacedName) -> controller.Outcome:
        """Choose the target of a pod, if it waits for one."""
        pod = self._pods.get(key)
        if pod is None or not proxy.is_waiting(pod):
            self._end(key, is_bound=pod is not None and proxy.is_bound(pod))
            return controller.Done()
        try:
            attempts = self._attempts_of(pod)
        except HansaError as error:
            self._warn(pod, reason := source_pod.check(pod) or str(error))
            return controller.Terminal(reason)
        candidate = pod.annotations.get(keys.CANDIDATE, "")
        if candidate and (rest := self._rest_seconds(pod, candidate, attempts)) is not None:
            self.pending.discard(key)
            return controller.After(rest) if rest else controller.Done()
        return await self._place(pod, candidate, attempts)

    def _attempts_of(self, pod: Object) -> Attempts:
        known = self._attempts.get(pod.key)
        if known is None or known.request.uid != pod.uid:
            known = self._attempts[pod.key] = Attempts(proxy.request_of(pod))
        return known

    def _end(self, key: NamespacedName, *, is_bound: bool) -> None:
        self._attempts.pop(key, None)
        self.pending.discard(key)
        if is_bound:
            self._targets.settle(key, self._clock.now() + SETTLE_SECONDS)
        elif self._targets.release(key):
            self.capacity_changed()

    def _rest_seconds(self, pod: Object, candidate: str, attempts: Attempts) -> float | None:
        """Seconds until a pod that stays where it is is due again; 0 for its next change, None if it may move."""
        now = self._clock.now()
        if failure := proxy.failure(pod, candidate):
            if rest := attempts.stale_seconds(failure, now):
                return rest
            attempts.fail(candidate, failure, now, self._random)
            self._targets.release(pod.key)
            return None
        attempts.is_failing = False
        if not self._targets.may_take(candidate, pod.namespace):  # a user may write the annotation
            return None
        unusable = self._targets.unusable_seconds(candidate, now)
        if unusable >= MOVE_SECONDS:
            return None
        if self._targets.target_of(pod.key) != candidate:
            self._targets.hold(pod.key, candidate, attempts.request.delegate)
        return MOVE_SECONDS - unusable if unusable else 0.0

    async def _place(self, pod: Object, candidate: str, attempts: Attempts) -> controller.Outcome:
        now = self._clock.now()
        if self._targets.expire(now):
            self.capacity_changed()
        verdict = self._choose(attempts.request, attempts.avoided(candidate, now))
        attempts.forget_explained(verdict)
        if verdict.best is None:
            self.pending.add(pod.key)
            self._report(pod, verdict, attempts)
            seconds = attempts.retry_seconds(now)
            return controller.Done() if seconds is None else controller.After(seconds)
        self.pending.discard(pod.key)
        await self._assign(pod, verdict.best, attempts)
        return controller.Done()

    def _choose(self, request: ProxyRequest, avoided: dict[str, str]) -> Verdict:
        is_alike = not avoided and request.proxy.pod_constraints == pod_affinity_terms.NONE
        kind = request.kind if is_alike else None
        if kind is not None and (known := self._refusals.get(kind)) is not None:
            return known
        nodes = self._nodes.view(request, self._pods.values())
        verdict = choosing.choose(request, self._targets, nodes, avoided=avoided)
        if kind is not None and verdict.best is None:
            self._refusals[kind] = verdict
        return verdict

    def _report(self, pod: Object, verdict: Verdict, attempts: Attempts) -> None:
        """One Event with the reasons of all targets."""
        if attempts.is_news(verdict, self._clock.now()):
            self._warn(pod, str(verdict) if verdict.refusals else _no_targets(pod.namespace))

    def _warn(self, pod: Object, message: str) -> None:
        self._recorder.record(InvolvedObject.of(pod), "FailedScheduling", message, event_type=EventType.WARNING)

    async def _assign(self, pod: Object, fit: Fit, attempts: Attempts) -> None:
        """Write the choice; the reservation is made before, so that concurrent choices don't use the same resources."""
        if pod.annotations.get(keys.CANDIDATE) == fit.cluster:
            return
        self._targets.hold(pod.key, fit.cluster, attempts.request.delegate)
        attempts.begin(self._clock.now(), proxy.failure(pod, fit.cluster))
        patch = {"metadata": {"uid": pod.uid, "annotations": {keys.CANDIDATE: fit.cluster}}}
        try:
            self._pods.observe(await self._client.patch(resources.PODS, pod.name, patch, namespace=pod.namespace))
        except (errors.NotFound, errors.Conflict) as error:  # it is gone; a later one of its name has its own key
            log.info("target not written", extra={"pod": str(pod.key), "error": str(error)})
            self._targets.release(pod.key)
        except errors.ApiError:
            self._targets.release(pod.key)
            raise


def _no_targets(namespace: str) -> str:
    return f"namespace {namespace} has no targets: create a Target in it, or a ClusterTarget"
