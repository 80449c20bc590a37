"""Which pods leave a node that fails or is drained, and whether their controllers create successors. Pure."""

import math
from typing import Final

import msgspec

from hansa.kube.language import tolerations
from hansa.kube.language.tolerations import Effect, Taint, Toleration
from hansa.kube.objects import Object
from hansa.scheduling import evaluation, pod_request
from hansa.scheduling.forecasting import made_nodes
from hansa.scheduling.forecasting.forecast import Departure, Fate, Subject
from hansa.scheduling.snapshot import Snapshot, of
from hansa.scheduling.verdict import Fit

NOT_READY: Final = Taint("node.kubernetes.io/not-ready", effect=Effect.NO_EXECUTE)


class _Spec(msgspec.Struct, frozen=True):
    tolerations: tuple[Toleration, ...] | None = None


def from_lost_node(subject: Subject, node: str) -> Departure:
    """A pod on a virtual node whose cluster is lost: the node becomes NotReady, and taints evict its pods."""
    accepted = subject.pod.decode("spec", _Spec).tolerations or ()
    seconds = tolerations.seconds_until_eviction((NOT_READY,), accepted)
    if seconds == math.inf:
        return Departure(f"it tolerates that node {node} is not ready, and stays bound to it", Fate.STAYS)
    after = f"evicted {seconds:g} s after node {node} becomes not ready"
    match subject.controller:
        case "":
            return Departure(f"{after}; no controller creates it again", Fate.ENDS)
        case "StatefulSet":
            return Departure(f"{after}; its StatefulSet waits until {subject.cluster} confirms its end", Fate.STAYS)
        case _:
            return Departure(after)


def from_drained_node(subject: Subject) -> Departure:
    """A pod whose copy is evicted: it is deleted with it."""
    reason = f"evicted from node {subject.node} of {subject.cluster}"
    if subject.controller:
        return Departure(reason)
    return Departure(f"{reason}; no controller creates it again", Fate.ENDS)


def drained(cluster: Snapshot, name: str, ours: frozenset[object]) -> Snapshot:
    """A cluster with one node cordoned, whose other pods went to other nodes. `ours` are the keys of pods of ours."""
    found = cluster.with_node(made_nodes.cordoned(cluster.nodes[name]))
    moved: dict[object, Object | None] = {}
    view = found.view
    for pod in found.pods_on(name):
        kinds = {one.kind for one in pod.metadata.owner_references if one.controller}
        if pod.key in ours or kinds & {"DaemonSet", "Node"}:
            continue
        view, request = view.without_pod(pod.key), pod_request.of_pod(pod)
        result = evaluation.evaluate(request, view) if kinds else None
        moved[pod.key] = None
        if isinstance(result, Fit):
            there = pod.with_fields(spec={**pod.spec, "nodeName": result.node})
            moved[pod.key], view = there, view.with_pod(there)
    pods = [moved.get(key, pod) for key, pod in found.pods.items()]
    return of(found.name, found.nodes.values(), (pod for pod in pods if pod is not None))
