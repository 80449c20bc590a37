"""Sends a pod to the virtual node in whose cluster the volumes of its claims are: no other can reach them. Pure."""

from collections.abc import Callable, Iterator
from typing import Any

from hansa.admission.parking import Pod
from hansa.admission.steering import HOSTNAME
from hansa.kube.objects import Object
from hansa.model import keys


def pin(pod: Pod, node: str | None) -> Pod:
    """The pod with this node asked of the scheduler, which still looks at taints and room there."""
    spec = pod.get("spec") or {}
    selector = spec.get("nodeSelector") or {}
    if node is None or spec.get("nodeName") or HOSTNAME in selector:
        return pod
    return {**pod, "spec": {**spec, "nodeSelector": {**selector, HOSTNAME: node}}}


def node_of(
    pod: Pod,
    *,
    claim: Callable[[str], Object | None],
    volume: Callable[[str], Object | None],
    is_virtual: Callable[[str], bool],
) -> str | None:
    """The virtual node that a claim of the pod belongs to; the first claim that has one says it."""
    for name in _claims(pod):
        if found := claim(name):
            if is_virtual(selected := found.annotations.get(keys.SELECTED_NODE, "")):
                return selected
            bound = volume(found.spec.get("volumeName") or "")
            if bound and (place := _place(bound, is_virtual)):
                return place
    return None


def _claims(pod: Pod) -> Iterator[str]:
    for one in (pod.get("spec") or {}).get("volumes") or []:
        if name := (one.get("persistentVolumeClaim") or {}).get("claimName"):
            yield name


def _place(volume: Object, is_virtual: Callable[[str], bool]) -> str | None:
    """The only virtual node that a volume can be used on."""
    required: dict[str, Any] = ((volume.spec.get("nodeAffinity") or {}).get("required")) or {}
    for term in required.get("nodeSelectorTerms") or []:
        for expression in term.get("matchExpressions") or []:
            match expression:
                case {"key": "kubernetes.io/hostname", "operator": "In", "values": [str(name)]} if is_virtual(name):
                    return name
    return None
