"""What a pod asks of a cluster, read once: amounts, node constraints, tolerations, relations to other pods.
Its volumes and host ports are left to the cluster's own scheduler.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from hansa.kube import objects
from hansa.kube.language import affinity as node_affinity
from hansa.kube.language.tolerations import Toleration
from hansa.model import requests
from hansa.scheduling import pod_affinity_terms as pod_relations


@dataclass(frozen=True, slots=True)
class PodRequest:
    """A pod that looks for a place, as it would be in the cluster that is asked."""

    amounts: requests.Amounts
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    affinity: node_affinity.NodeAffinity = field(default_factory=node_affinity.NodeAffinity)
    tolerations: tuple[Toleration, ...] = ()
    relations: pod_relations.Relations = pod_relations.NONE


def of_pod(pod: objects.Object, below: pod_relations.Namespaces = str) -> PodRequest:
    """Read a pod; `below` gives the namespaces their names in the cluster that is asked."""
    return PodRequest(
        amounts=requests.asked(pod),
        namespace=below(pod.namespace),
        labels=pod.labels,
        affinity=node_affinity.of_pod_spec(pod.spec),
        tolerations=pod.decode("spec", _Spec).tolerations or (),
        relations=pod_relations.of_pod(pod, below),
    )


class _Spec(msgspec.Struct, frozen=True):
    tolerations: tuple[Toleration, ...] | None = None
