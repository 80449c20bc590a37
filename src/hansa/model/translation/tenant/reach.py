"""Whom a tenant's Service reaches where its pods are in several super clusters, in a sentence for its condition."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hansa.kube import selectors
from hansa.kube.objects import Object
from hansa.model import keys, requests
from hansa.model.translation.tenant import pooling

CONDITION: Final = "hansa.dev/ReachesAllEndpoints"


@dataclass(frozen=True, slots=True)
class Reach:
    """A condition's words."""

    is_whole: bool
    reason: str
    message: str


def of(service: Object, pods: Iterable[Object], placed: frozenset[str], *, are_networks_joined: bool) -> Reach | None:
    """Whom a Service reaches; None if nobody computes endpoints of it. `pods` are those of its namespace."""
    selector = service.spec.get("selector")
    if not selector or service.spec.get("type") == "ExternalName":
        return None
    if are_networks_joined:
        return Reach(True, "NetworksJoined", "every super cluster has the endpoints of all")
    counts = _counts(selectors.of_labels(selector), pods)
    clusters = sorted(placed | counts.keys())
    if len(clusters) <= 1:
        return Reach(True, "OneCluster", f"all of it is in {clusters[0]}" if clusters else "it is in no super cluster")
    told = ", ".join(f"in {cluster} it reaches {_pods(counts[cluster])}" for cluster in clusters)
    way = (
        "each address of its balancer reaches the pods of one super cluster"
        if service.spec.get("type") == "LoadBalancer"
        else "type LoadBalancer would have an address for each super cluster"
    )
    return Reach(False, "SeveralClusters", f"its cluster IP reaches the pods of one super cluster only: {told}; {way}")


def _counts(selector: selectors.Selector, pods: Iterable[Object]) -> Counter[str]:
    there = (pooling.annotation(pod, keys.SUPER_CLUSTER) for pod in pods if _counts_in(pod, selector))
    return Counter(cluster for cluster in there if cluster)


def _counts_in(pod: Object, selector: selectors.Selector) -> bool:
    return selector.matches(pod.labels) and not pod.is_leaving and not requests.is_finished(pod)


def _pods(number: int) -> str:
    return f"{number or 'no'} pod" + ("" if number == 1 else "s")
