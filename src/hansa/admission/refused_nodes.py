"""Keeps a pod off virtual nodes whose clusters could not schedule a former pod of the same owner. Pure.

Pod in, pod out, in their JSON form, and idempotent.
"""

from collections.abc import Sequence
from typing import Any

from hansa.admission.constraints import REQUIRED, Pod
from hansa.model import keys, refused_owners


def avoid(pod: Pod, nodes: Sequence[str]) -> Pod:
    """The pod with these nodes excluded by its node affinity, and named in an annotation."""
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    if not nodes or keys.AVOIDS in annotations or spec.get("nodeName"):
        return pod
    affinity = spec.get("affinity") or {}
    node_affinity = affinity.get("nodeAffinity") or {}
    required = node_affinity.get(REQUIRED) or {}
    excluded = {"key": refused_owners.HOSTNAME, "operator": "NotIn", "values": list(nodes)}
    # Terms are alternatives, so each excludes the nodes.
    terms = [_and(term, excluded) for term in required.get("nodeSelectorTerms") or [{}]]
    return {
        **pod,
        "metadata": {**metadata, "annotations": {**annotations, keys.AVOIDS: ",".join(nodes)}},
        "spec": {
            **spec,
            "affinity": {**affinity, "nodeAffinity": {**node_affinity, REQUIRED: {"nodeSelectorTerms": terms}}},
        },
    }


def owner_of(pod: Pod) -> str:
    """The uid of the pod's controller; empty if there is none."""
    owners: list[dict[str, Any]] = (pod.get("metadata") or {}).get("ownerReferences") or []
    return next((str(one.get("uid") or "") for one in owners if one.get("controller")), "")


def _and(term: dict[str, Any], condition: dict[str, Any]) -> dict[str, Any]:
    return {**term, "matchExpressions": [*(term.get("matchExpressions") or []), condition]}
