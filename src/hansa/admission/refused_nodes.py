"""Keeps a pod off virtual nodes whose clusters could not schedule a former pod of the same owner. Pure.

Pod in, pod out, in their JSON form, and idempotent.
"""

from collections.abc import Sequence
from typing import Any

from hansa.admission import required_affinity
from hansa.admission.constraints import Pod
from hansa.model import keys, refused_owners


def avoid(pod: Pod, nodes: Sequence[str]) -> Pod:
    """The pod with these nodes excluded by its node affinity, and named in an annotation."""
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    # A template may have the annotation, from a pod that was copied: it is only kept if it is set here.
    annotations = {key: value for key, value in (metadata.get("annotations") or {}).items() if key != keys.AVOIDS}
    if not nodes or spec.get("nodeName"):
        is_clean = keys.AVOIDS not in (metadata.get("annotations") or {})
        return pod if is_clean else {**pod, "metadata": {**metadata, "annotations": annotations}}
    excluded = {"key": refused_owners.HOSTNAME, "operator": "NotIn", "values": list(nodes)}
    return {
        **pod,
        "metadata": {**metadata, "annotations": {**annotations, keys.AVOIDS: ",".join(nodes)}},
        "spec": required_affinity.requiring(spec, excluded),
    }


def owner_of(pod: Pod) -> str:
    """The uid of the pod's controller; empty if there is none."""
    owners: list[dict[str, Any]] = (pod.get("metadata") or {}).get("ownerReferences") or []
    return next((str(one.get("uid") or "") for one in owners if one.get("controller")), "")
