"""Requires the virtual node of the cluster that has the volumes of a pod's claims: no other cluster has them.

Pod in, pod out, in their JSON form. Pure: claims, volumes and nodes are looked up by functions that are given.
"""

from collections.abc import Callable, Iterator
from typing import Any

from hansa.admission.constraint_split import HOSTNAME
from hansa.admission.constraints import Pod
from hansa.kube.objects import Object
from hansa.model import keys


def require_node(pod: Pod, node: str | None) -> Pod:
    """The pod with the node in its nodeSelector. Unlike nodeName, that leaves taints and capacity to the scheduler.

    A node that the user chose, by nodeName or by hostname, is kept.
    """
    spec = pod.get("spec") or {}
    selector = spec.get("nodeSelector") or {}
    if node is None or spec.get("nodeName") or HOSTNAME in selector:
        return pod
    return {**pod, "spec": {**spec, "nodeSelector": {**selector, HOSTNAME: node}}}


def node_of_claims(
    pod: Pod,
    *,
    claim: Callable[[str], Object | None],
    volume: Callable[[str], Object | None],
    is_virtual: Callable[[str], bool],
) -> str | None:
    """The virtual node that the pod's claims are tied to, by the first claim that is tied to one."""
    for name in _claim_names(pod):
        if found := claim(name):
            if is_virtual(selected := found.annotations.get(keys.SELECTED_NODE, "")):
                return selected
            bound = volume(found.spec.get("volumeName") or "")
            if bound and (node := _node_of_volume(bound, is_virtual)):
                return node
    return None


def _claim_names(pod: Pod) -> Iterator[str]:
    for volume in (pod.get("spec") or {}).get("volumes") or []:
        if name := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
            yield name


def _node_of_volume(volume: Object, is_virtual: Callable[[str], bool]) -> str | None:
    """The virtual node that a volume's node affinity requires, if it names exactly one."""
    required: dict[str, Any] = ((volume.spec.get("nodeAffinity") or {}).get("required")) or {}
    for term in required.get("nodeSelectorTerms") or []:
        for expression in term.get("matchExpressions") or []:
            match expression:
                case {"key": "kubernetes.io/hostname", "operator": "In", "values": [str(name)]} if is_virtual(name):
                    return name
    return None
