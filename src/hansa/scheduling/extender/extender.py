"""Answers kube-scheduler: which virtual nodes fit a pod, how well, and the binding, for which room is reserved first.

Decisions are those of `scheduling.evaluation` on views of the lower clusters. Ordinary nodes always pass, because
kube-scheduler knows them, and so do nodes of lower clusters that are not configured.
"""

from collections.abc import Callable, Mapping
from typing import Final

from hansa.control.store import Store
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.model import requests
from hansa.runtime.errors import HansaError
from hansa.scheduling import evaluation
from hansa.scheduling.extender.lower import Lower
from hansa.scheduling.extender.messages import Binding, Bound, Candidates, Filtered, Priority
from hansa.scheduling.extender.waiting import Waiting
from hansa.scheduling.pod_request import PodRequest
from hansa.scheduling.verdict import Closed, Fit, Refusal

BEST: Final = 10  # the highest score that kube-scheduler takes from an extender
ORDINARY: Final = 5  # the score of nodes that the extender does not judge
MOST_FILTERED: Final = 10_000  # pods between filter and bind; kube-scheduler has few at a time
_WHOLE: Final = 100 * sum(weight for weight, _ in evaluation.SPREADING.scores)
RequestOf = Callable[[Object, Object], PodRequest]


class Extender:
    """Serves the pods of one upper cluster. `request_of` makes the request of a pod's copy below a virtual node."""

    def __init__(
        self,
        client: Client,
        lowers: Mapping[str, Lower],
        *,
        nodes: Store,
        pods: Store,
        lower_of: Callable[[Object], str],
        request_of: RequestOf,
        waiting: Waiting,
    ) -> None:
        self._client, self._lowers, self._nodes, self._pods = client, lowers, nodes, pods
        self._lower_of, self._request_of, self._waiting = lower_of, request_of, waiting
        self._filtered: dict[str, Object] = {}  # by uid: pods that kube-scheduler may bind

    def filter(self, asked: Candidates) -> Filtered:
        """The nodes that fit a pod, and why the others don't."""
        pod, passed, failed = Object.of(asked.pod), list[str](), dict[str, str]()
        for name in asked.node_names or ():
            result = self.result(pod, name)
            if isinstance(result, Refusal):
                failed[name] = str(result)
            else:
                passed.append(name)
        if passed:
            self._remember(pod)
        self._waiting.note(pod, failed)
        return Filtered(passed, failed)

    def prioritize(self, asked: Candidates) -> list[Priority]:
        """The scores of nodes that fit a pod."""
        pod = Object.of(asked.pod)
        return [Priority(name, _score(self.result(pod, name))) for name in asked.node_names or ()]

    async def bind(self, asked: Binding) -> Bound:
        """Bind a pod, if there is still room for it."""
        key, pod = NamespacedName(asked.namespace, asked.name), self._filtered.pop(asked.uid, None)
        lower = self._lower(asked.node)
        if lower is not None:
            if pod is None:
                return Bound(
                    f"pod {key} was not filtered by this extender: it has restarted, and kube-scheduler tries again"
                )
            result = self.result(pod, asked.node)
            if not isinstance(result, Fit):
                return Bound(f"{result} (the room was given to another pod)")
            self._reserve(lower, pod, asked.node, result)
        try:
            await self._bind(asked)
        except errors.ApiError as error:
            if lower is not None:
                lower.release(key)
            return Bound(str(error))
        return Bound()

    def observe(self, key: NamespacedName) -> None:
        """A pod of the upper cluster changed: from its binding until its copy is bound it has a reservation."""
        pod = self._pods.get(key)
        bound_to = "" if pod is None or requests.is_finished(pod) else pod.spec.get("nodeName", "")
        if pod is None or bound_to or requests.is_finished(pod):
            self._waiting.forget(key)
        lower = self._lower(bound_to)
        for other in self._lowers.values():
            if other is not lower:
                other.release(key)
        if lower is not None and pod is not None and not lower.knows(key):
            result = self.result(pod, bound_to)
            if isinstance(result, Fit):
                self._reserve(lower, pod, bound_to, result)

    def fits(self, pod: Object, node: str) -> bool:
        """Whether a pod fits a node now."""
        return not isinstance(self.result(pod, node), Refusal)

    def result(self, pod: Object, name: str) -> Fit | Refusal | None:
        """The verdict on a virtual node; None for a node that is not judged."""
        node, lower = self._node(name), self._lower(name)
        if node is None or lower is None:
            return None
        try:
            return evaluation.evaluate(self._request_of(pod, node), lower.view)
        except HansaError as error:  # an annotation or a constraint of the pod is invalid
            return Refusal(lower.name, (Closed(str(error)),))

    def _remember(self, pod: Object) -> None:
        self._filtered.pop(pod.uid, None)
        self._filtered[pod.uid] = pod
        if len(self._filtered) > MOST_FILTERED:
            del self._filtered[next(iter(self._filtered))]

    def _reserve(self, lower: Lower, pod: Object, name: str, fit: Fit) -> None:
        if (node := self._node(name)) is not None:
            lower.reserve(pod.key, self._request_of(pod, node), fit.node)

    async def _bind(self, asked: Binding) -> None:
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": asked.name, "namespace": asked.namespace, "uid": asked.uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": asked.node},
        }
        await self._client.call(
            resources.PODS, asked.name, "binding", body=Object.of(binding), namespace=asked.namespace
        )

    def _node(self, name: str) -> Object | None:
        return self._nodes.get(NamespacedName("", name))

    def _lower(self, name: str) -> Lower | None:
        node = self._node(name)
        return None if node is None else self._lowers.get(self._lower_of(node))


def _score(result: Fit | Refusal | None) -> int:
    if result is None:
        return ORDINARY
    return 0 if isinstance(result, Refusal) else min(BEST, result.score * BEST // _WHOLE)
