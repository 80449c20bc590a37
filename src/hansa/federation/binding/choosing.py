"""Chooses the target of a proxy pod: its virtual node matches the proxy pod, and a node of it fits the delegate."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from hansa.federation.binding.proxy import ProxyRequest
from hansa.federation.binding.reserved_views import ReservedViews
from hansa.scheduling import evaluation
from hansa.scheduling.cluster_view import ClusterView
from hansa.scheduling.pod_request import PodRequest
from hansa.scheduling.verdict import Closed, Filtered, Fit, Insufficient, Reason, Refusal, Verdict

NO_RESERVATION_SCORE = -1  # of a target where a pod without reservation does not fit now


def choose(
    request: ProxyRequest, targets: ReservedViews, nodes: ClusterView, *, avoided: Mapping[str, str] | None = None
) -> Verdict:
    """Evaluate a pod in every target of its namespace.

    `nodes` has the virtual nodes, `avoided` the targets that did not take the pod, with the reasons.
    """
    refused = dict(_refused_nodes(request.proxy, nodes))
    return Verdict.of(_results(request, targets, nodes, refused, avoided or {}))


def _results(
    request: ProxyRequest,
    targets: ReservedViews,
    nodes: ClusterView,
    refused: Mapping[str, str],
    avoided: Mapping[str, str],
) -> Iterator[Fit | Refusal]:
    for name, view in targets.views.items():
        if not view.link.takes(request.proxy.namespace):
            continue
        if view.problem:
            yield Refusal(name, (Closed(view.problem),))
        elif nodes.node(name) is None:
            yield Refusal(name, (Closed("its virtual node does not exist yet"),))
        elif name in refused:
            yield Refusal(name, (Filtered(1, refused[name]),))
        else:
            yield _avoiding(_evaluated(request, targets.free(name)), avoided)


def _evaluated(request: ProxyRequest, view: ClusterView) -> Fit | Refusal:
    result = evaluation.evaluate(request.delegate, view)
    if isinstance(result, Fit):
        return result
    if not request.is_reserved:
        return Fit(view.cluster, "", NO_RESERVATION_SCORE)
    return replace(result, reasons=tuple(map(_without_node, result.reasons)))


def _avoiding(result: Fit | Refusal, avoided: Mapping[str, str]) -> Fit | Refusal:
    is_avoided = isinstance(result, Fit) and result.cluster in avoided
    return Refusal(result.cluster, (Closed(avoided[result.cluster]),)) if is_avoided else result


def _without_node(reason: Reason) -> Reason:
    """The names of nodes in views are made up."""
    return replace(reason, node="") if isinstance(reason, Insufficient) else reason


def _refused_nodes(request: PodRequest, nodes: ClusterView) -> Iterable[tuple[str, str]]:
    """The virtual nodes that don't match the proxy pod, each with the reason. There is one for each target."""
    checks = [check for one in evaluation.SPREADING.filters if (check := one(request, nodes)) is not None]
    for node in nodes.nodes():
        for check in checks:
            reason = (check.shape(node.shape) if check.shape else "") or (check.node(node) if check.node else "")
            if reason:
                yield node.name, reason
                break
