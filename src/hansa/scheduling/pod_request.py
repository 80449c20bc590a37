"""What filters and scores read of a pod, decoded once: resources, constraints on nodes and pods, host ports.

Volumes are left to the cluster's own scheduler.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from hansa.kube import objects
from hansa.kube.language import affinity as node_affinity
from hansa.kube.language.tolerations import Toleration
from hansa.model import requests
from hansa.scheduling import host_ports, pod_affinity_terms
from hansa.scheduling.host_ports import HostPort


@dataclass(frozen=True, slots=True)
class PodRequest:
    """A pod to schedule, with the namespace that it has in the cluster."""

    amounts: requests.Amounts
    namespace: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    affinity: node_affinity.NodeAffinity = field(default_factory=node_affinity.NodeAffinity)
    tolerations: tuple[Toleration, ...] = ()
    pod_constraints: pod_affinity_terms.PodConstraints = pod_affinity_terms.NONE
    host_ports: frozenset[HostPort] = frozenset()


def of_pod(pod: objects.Object, below: pod_affinity_terms.Namespaces = str) -> PodRequest:
    """Decode a pod; `below` maps namespaces to their names in the cluster."""
    return PodRequest(
        amounts=requests.of_pod(pod),
        namespace=below(pod.namespace),
        labels=pod.labels,
        affinity=node_affinity.of_pod_spec(pod.spec),
        tolerations=pod.decode("spec", _Spec).tolerations or (),
        pod_constraints=pod_affinity_terms.of_pod(pod, below),
        host_ports=host_ports.of_pod(pod),
    )


class _Spec(msgspec.Struct, frozen=True):
    tolerations: tuple[Toleration, ...] | None = None
