"""Answers kube-scheduler: which virtual nodes fit a pod, how well, and the binding, for which room is reserved first.

Decisions are those of `scheduling.evaluation` on views of the lower clusters. Ordinary nodes always pass, because
kube-scheduler knows them, and so do nodes of lower clusters that are not configured.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
        # By the uid of a pod that kube-scheduler may bind: the nodes that passed.
        self._filtered: dict[str, Mapping[str, _Passed]] = {}
        # Bindings that the cache does not show yet, with the uid of the pod: an older event may not free their room.
        self._binding: dict[NamespacedName, str] = {}

    def filter(self, asked: Candidates) -> Filtered:
        """The nodes that fit a pod, and why the others don't."""
        pod, passed, failed = asked.pod, dict[str, _Passed](), dict[str, str]()
        for name in asked.node_names:
            result = self._evaluated(pod, name)
            if isinstance(result, Refusal):
                failed[name] = str(result)
            else:
                passed[name] = result
        if passed:
            self._remember(pod, passed)
        self._waiting.note(pod, failed)
        return Filtered(list(passed), failed)

    def prioritize(self, asked: Candidates) -> list[Priority]:
        """The scores of nodes that fit a pod, as they were when it was filtered a moment ago."""
        known = self._filtered.get(asked.pod.uid) or {}
        found = {name: known.get(name) or self._evaluated(asked.pod, name) for name in asked.node_names}
        return [Priority(name, one.score if isinstance(one, _Passed) else 0) for name, one in found.items()]

    async def bind(self, asked: Binding) -> Bound:
        """Bind a pod, if there is still room for it."""
        key, filtered = NamespacedName(asked.namespace, asked.name), self._filtered.pop(asked.uid, {})
        lower = self._lower(asked.node)
        if lower is not None:
            passed = filtered.get(asked.node)
            if passed is None or passed.request is None:
                return Bound(
                    f"pod {key} was not filtered by this extender: it has restarted, and kube-scheduler tries again"
                )
            result = evaluation.evaluate(passed.request, lower.view)
            if not isinstance(result, Fit):
                return Bound(f"{result} (the room was given to another pod)")
            lower.reserve(key, passed.request, result.node)
            self._binding[key] = asked.uid
        try:
            await self._bind(asked)
        except errors.ApiError as error:
            self._binding.pop(key, None)
            if lower is not None:
                lower.release(key)
            return Bound(str(error))
        return Bound()

    def observe(self, key: NamespacedName) -> None:
        """A pod of the upper cluster changed: from its binding until its copy is bound it has a reservation."""
        pod = self._pods.get(key)
        has_ended = pod is None or requests.is_finished(pod)
        bound_to = "" if pod is None or has_ended else pod.spec.get("nodeName", "")
        if bound_to or has_ended:
            self._waiting.forget(key)
        elif pod is not None and self._binding.get(key) == pod.uid:
            return
        self._binding.pop(key, None)
        lower = self._lower(bound_to)
        for other in self._lowers.values():
            if other is not lower:
                other.release(key)
        if lower is not None and pod is not None and not lower.knows(key):
            evaluated = self._evaluated(pod, bound_to)
            if isinstance(evaluated, _Passed) and evaluated.request is not None:
                lower.reserve(key, evaluated.request, evaluated.node)

    def fits(self, pod: Object, node: str) -> bool:
        """Whether a pod fits a node now."""
        return not isinstance(self._evaluated(pod, node), Refusal)

    def _evaluated(self, pod: Object, name: str) -> "_Passed | Refusal":
        """The verdict on a virtual node; every other node passes."""
        node, lower = self._node(name), self._lower(name)
        if node is None or lower is None:
            return _Passed(ORDINARY)
        try:
            request = self._request_of(pod, node)
            result = evaluation.evaluate(request, lower.view)
        except HansaError as error:  # an annotation or a constraint of the pod is invalid
            return Refusal(lower.name, (Closed(str(error)),))
        if isinstance(result, Refusal):
            return result
        return _Passed(min(BEST, result.score * BEST // _WHOLE), request, result.node)

    def _remember(self, pod: Object, passed: Mapping[str, "_Passed"]) -> None:
        self._filtered.pop(pod.uid, None)
        self._filtered[pod.uid] = passed
        if len(self._filtered) > MOST_FILTERED:
            del self._filtered[next(iter(self._filtered))]

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


@dataclass(frozen=True, slots=True)
class _Passed:
    """A node that takes a pod: its score, and, if it is a virtual one, the request and the node below."""

    score: int
    request: PodRequest | None = None
    node: str = ""
