"""A source cluster and its targets as the binder decides, at one moment. Pure and immutable; used for questions."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf

from hansa.federation.api import PROVIDER
from hansa.federation.binding import proxy
from hansa.federation.binding.nodes import VirtualNodes
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys, requests
from hansa.model.requests import Amounts
from hansa.model.translation.federation.target_link import TargetLink
from hansa.scheduling import evaluation, explaining
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.explaining import Answer, Candidate, Gate
from hansa.scheduling.forecasting import made_nodes
from hansa.scheduling.snapshot import Snapshot
from hansa.scheduling.verdict import Fit


@dataclass(frozen=True, slots=True)
class TargetState:
    """A target: what its summary says, and our delegates in it. `unknown` is why it could not be read."""

    link: TargetLink
    view: ClusterView = field(default_factory=lambda: ClusterView(""))
    delegates: Mapping[str, Object] = field(default_factory=dict)  # by the uid of the proxy pod
    problem: str = ""
    unknown: str = ""

    @property
    def name(self) -> str:
        """As its users know it: namespace/name of the Target, or the name of the ClusterTarget."""
        return f"{self.link.namespace}/{self.link.target}" if self.link.namespace else self.link.target


@dataclass(frozen=True, slots=True)
class Federation:
    """A source with its proxy pods, and its targets by virtual node."""

    source: Snapshot
    targets: Mapping[str, TargetState]
    # The pods that have a target as candidate and are not bound, by its virtual node: a forecast asks for each pod.
    _coming: Mapping[str, tuple[Object, ...]] | None = None

    def __post_init__(self) -> None:
        if self._coming is None:
            coming: dict[str, tuple[Object, ...]] = {}
            for pod in self.source.pods.values():
                node = pod.annotations.get(keys.CANDIDATE, "") if _is_proxy(pod) else ""
                if node and proxy.is_waiting(pod):
                    coming[node] = (*coming.get(node, ()), pod)
            object.__setattr__(self, "_coming", coming)

    def target_of(self, pod: Object) -> str:
        """The virtual node of the target that a pod is in, or is a candidate for; empty if none."""
        bound = pod.spec.get("nodeName", "")
        return bound if bound in self.targets else pod.annotations.get(keys.CANDIDATE, "")

    def cluster_of(self, pod: Object) -> str:
        """The target of a pod, as its users know it."""
        target = self.targets.get(self.target_of(pod))
        return "" if target is None else target.name

    def copy_of(self, pod: Object) -> Object | None:
        """The delegate of a pod."""
        target = self.targets.get(self.target_of(pod))
        return None if target is None else target.delegates.get(pod.uid)

    def answers(self, pod: Object) -> list[Answer]:
        """What each target of a pod's namespace says, as if the pod was not there."""
        request = proxy.request_of(pod)
        found = explaining.answers(self.candidates(pod))
        return found if request.is_reserved else [_unreserved(one) for one in found]

    def candidates(self, pod: Object) -> Iterator[Candidate]:
        """The targets of a pod's namespace."""
        request, nodes = proxy.request_of(pod), self._virtual_nodes()
        above = nodes.view(request, (one for one in self.source.pods.values() if _is_proxy(one)))
        for node, target in sorted(self.targets.items()):
            if not target.link.takes(pod.namespace):
                continue
            # Sums of virtual nodes don't count: summaries have what is free on each node.
            gate = Gate(node, replace(request.proxy, amounts={}), above)
            view = self.free(target, besides=pod.key)
            bound = pod.spec.get("nodeName", "") == node
            yield Candidate(node, request.delegate, view, None if bound else gate, target.unknown)

    def free(self, target: TargetState, *, besides: NamespacedName) -> ClusterView:
        """What is left in a target for a pod: less what others need that have it as candidate and no node yet."""
        view = replace(target.view, cluster=target.name, closed=target.problem).without_pod(besides)
        for pod in (self._coming or {}).get(target.link.node, ()):
            if pod.key == besides or pod.key in view.pods:
                continue
            request = proxy.request_of(pod).delegate
            if isinstance(fit := evaluation.evaluate(request, view), Fit):
                view = view.reserving(pod.key, request, node=fit.node, until=inf)
        return view

    def without_pod(self, pod: Object) -> "Federation":
        """The same without a proxy pod and its delegate."""
        coming = {node: tuple(one for one in pods if one.key != pod.key) for node, pods in (self._coming or {}).items()}
        found = replace(self, source=self.source.without_pod(pod.key), _coming=coming)
        target = self.targets.get(self.target_of(pod))
        return found if target is None else found.with_target(replace(target, view=target.view.without_pod(pod.key)))

    def with_target(self, target: TargetState) -> "Federation":
        """The same with one target replaced."""
        return replace(self, targets={**self.targets, target.link.node: target})

    def _virtual_nodes(self) -> VirtualNodes:
        found = VirtualNodes()
        for name, node in self.source.nodes.items():
            if node.labels.get(keys.PROVIDER_TAINT) == PROVIDER:
                found.update(name, node)
        return found


def with_delegates(
    view: ClusterView, delegates: Iterable[Object], proxies: Mapping[str, NamespacedName]
) -> ClusterView:
    """The view of a summary with our delegates in it, as pods that can be taken away again.

    Summaries have what is left besides them, and nodes by host name, if there are not too many. Delegates have the
    names of their proxy pods.
    """
    loads: dict[str, Amounts] = {}
    bound = [(one, found) for one in delegates if (found := requests.of_bound_pod(one)) is not None]
    for _, one in bound:
        requests.add(loads.setdefault(one.node, {}), one.amounts)
    made = ClusterView(view.cluster)
    for node in view.nodes():
        name = node.label(made_nodes.HOSTNAME) or node.name
        made = made.with_node(made_nodes.named(node, name, more=loads.get(name, {})))
    for pod, one in bound:
        key = proxies.get(pod.labels.get(keys.PARENT_UID, ""))
        if key is not None and made.node(one.node) is not None:
            made = made.with_pod(pod.with_metadata(namespace=key.namespace, name=key.name))
    return made


def _is_proxy(pod: Object) -> bool:
    return keys.SOURCE_POD in pod.annotations


def _unreserved(answer: Answer) -> Answer:
    """A pod with the annotation no-reservation is placed without regard to free resources."""
    if answer.unknown or answer.refusal is None or any("virtual node" in str(one) for one in answer.refusal.reasons):
        return answer
    return replace(answer, refusal=None, remedies=(), fits_on="")
