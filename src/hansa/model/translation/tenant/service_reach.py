"""The condition that reports whether a Service reaches all its endpoints, with pods in several super clusters."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hansa.kube.language import selectors
from hansa.kube.objects import Object
from hansa.model import keys, requests
from hansa.model.translation.tenant import pooled

CONDITION: Final = "hansa.dev/ReachesAllEndpoints"


@dataclass(frozen=True, slots=True)
class Reach:
    """Status, reason and message of the condition."""

    is_whole: bool
    reason: str
    message: str


def of(service: Object, pods: Iterable[Object], placed: frozenset[str], *, are_networks_joined: bool) -> Reach | None:
    """The condition of a Service; None for one without a selector. `pods` are those of its namespace."""
    selector = service.spec.get("selector")
    if not selector or service.spec.get("type") == "ExternalName":
        return None
    if are_networks_joined:
        return Reach(True, "NetworksJoined", "every super cluster has the endpoints of all super clusters")
    counts = _pods_per_cluster(selectors.of_labels(selector), pods)
    clusters = sorted(placed | counts.keys())
    if len(clusters) <= 1:
        where = f"all endpoints are in super cluster {clusters[0]}" if clusters else "not placed in any super cluster"
        return Reach(True, "OneCluster", where)
    listed = ", ".join(f"{cluster}: {_counted(counts[cluster])}" for cluster in clusters)
    remedy = (
        "each load balancer address reaches the pods of one super cluster"
        if service.spec.get("type") == "LoadBalancer"
        else "use type LoadBalancer to get an address per super cluster, or join the networks"
    )
    return Reach(
        False, "SeveralClusters", f"the cluster IP only reaches pods of the client's super cluster ({listed}); {remedy}"
    )


def _pods_per_cluster(selector: selectors.Selector, pods: Iterable[Object]) -> Counter[str]:
    clusters = (pooled.annotation(pod, keys.SUPER_CLUSTER) for pod in pods if _is_endpoint(pod, selector))
    return Counter(cluster for cluster in clusters if cluster)


def _is_endpoint(pod: Object, selector: selectors.Selector) -> bool:
    return selector.matches(pod.labels) and not pod.is_deleting and not requests.is_finished(pod)


def _counted(number: int) -> str:
    return f"{number or 'no'} pod" + ("" if number == 1 else "s")
