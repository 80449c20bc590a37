"""Adds a condition to the node affinity that a pod requires. Pure; on the JSON form of a PodSpec, and idempotent."""

from typing import Any, Final

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
Spec = dict[str, Any]


def requiring(spec: Spec, condition: dict[str, Any]) -> Spec:
    """The spec with this condition in each term: terms are alternatives. One without conditions matches no node."""
    affinity = spec.get("affinity") or {}
    node_affinity = affinity.get("nodeAffinity") or {}
    terms = (node_affinity.get(REQUIRED) or {}).get("nodeSelectorTerms")
    changed = [_and(term, condition) for term in terms] if terms else [{"matchExpressions": [condition]}]
    required = {REQUIRED: {"nodeSelectorTerms": changed}}
    return {**spec, "affinity": {**affinity, "nodeAffinity": {**node_affinity, **required}}}


def _and(term: dict[str, Any], condition: dict[str, Any]) -> dict[str, Any]:
    conditions = term.get("matchExpressions") or []
    is_empty = not conditions and not term.get("matchFields")
    return term if is_empty or condition in conditions else {**term, "matchExpressions": [*conditions, condition]}
