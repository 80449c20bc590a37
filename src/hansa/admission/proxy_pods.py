"""Turns an elected pod into a proxy pod: the binder schedules it, virtual nodes take it, its delegate runs elsewhere.

Pod in, pod out, in their JSON form, and idempotent. The pod as its user created it is kept in an annotation; a webhook
that changes the pod later changes what is kept there as well.
"""

from typing import Any, Final

import msgspec
import yaml

from hansa.admission.mutation import Refused
from hansa.model import annotation_json, keys
from hansa.model.translation.federation import labels, source_pod

Pod = dict[str, Any]
PROVIDER: Final = "admiralty"  # the value of the label and of the taint of virtual nodes
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
TOLERATIONS: Final = (
    {"key": keys.PROVIDER_TAINT, "value": PROVIDER},
    {"key": "node.kubernetes.io/network-unavailable", "operator": "Exists"},
)
# What a pod tolerates of a node that fails also applies to the virtual node of a target that fails.
_NODE_FAILURES: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


class _Constraints(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The part of a PodSpec that may constrain a proxy pod."""

    node_selector: dict[str, str] = {}
    affinity: dict[str, Any] | None = None
    tolerations: list[dict[str, Any]] = []
    topology_spread_constraints: list[dict[str, Any]] = []


def is_elected(pod: Pod) -> bool:
    """Whether the pod's user elected it to run in a target."""
    return keys.ELECT in _annotations(pod)


def proxy(pod: Pod) -> Pod:
    """The proxy pod of an elected pod."""
    _check(pod)
    original = _original(pod)
    metadata, spec = original["metadata"], original["spec"]
    constraints = _constraints(metadata["annotations"], spec)
    annotations = metadata["annotations"] | {keys.SOURCE_POD: _manifest(original)}
    finalizers = [*metadata.get("finalizers", ()), keys.POD_FINALIZER]
    return {
        **pod,
        "metadata": metadata
        | {
            "annotations": annotations,
            "labels": (metadata.get("labels") or {}) | {keys.HAS_FINALIZER: "true"},
            "finalizers": finalizers,
        },
        "spec": _proxy_spec(spec, constraints),
    }


def _check(pod: Pod) -> None:
    if node := pod.get("spec", {}).get("nodeName"):
        remedy = f"the target of an elected pod is chosen later; remove it or the annotation {keys.ELECT}"
        raise Refused("spec.nodeName", node, remedy)
    if problem := labels.check(_annotations(pod)):
        raise Refused(_field(keys.NO_PREFIX), _annotations(pod)[keys.NO_PREFIX], problem)


def _original(pod: Pod) -> Pod:
    """The pod as its user created it: without what a former call of this webhook added."""
    metadata, spec = pod.get("metadata") or {}, pod.get("spec") or {}
    annotations = _annotations(pod)
    kept = annotations.get(keys.SOURCE_POD)
    if kept is not None and spec.get("schedulerName") == keys.PROXY_SCHEDULER:
        try:
            replaced = source_pod.replaced_fields(kept)
        except annotation_json.AnnotationJsonError as error:
            raise Refused(_field(keys.SOURCE_POD), kept, f"{error}; remove the annotation") from None
        spec = {name: value for name, value in spec.items() if name not in source_pod.REPLACED} | replaced
    return {
        **pod,
        "metadata": metadata
        | {
            "annotations": {k: v for k, v in annotations.items() if k not in (keys.SOURCE_POD, keys.CANDIDATE)},
            "labels": {k: v for k, v in (metadata.get("labels") or {}).items() if k != keys.HAS_FINALIZER},
            "finalizers": [one for one in metadata.get("finalizers") or () if one != keys.POD_FINALIZER],
        },
        "spec": spec,
    }


def _manifest(original: Pod) -> str:
    """The pod as text, without what only the API server writes: it is read for each change of the proxy pod."""
    metadata = {name: value for name, value in original["metadata"].items() if value and name != "managedFields"}
    pod = {name: value for name, value in original.items() if name != "status"} | {"metadata": metadata}
    return msgspec.json.encode(pod, order="sorted").decode()


def _proxy_spec(spec: Pod, constraints: _Constraints) -> Pod:
    failures = [one for one in spec.get("tolerations") or () if one.get("key") in _NODE_FAILURES]
    tolerations = [*TOLERATIONS, *failures]
    tolerations += [one for one in constraints.tolerations if one not in tolerations]
    replaced: Pod = {
        "nodeSelector": {keys.PROVIDER_TAINT: PROVIDER, **constraints.node_selector},
        "affinity": constraints.affinity,
        "tolerations": tolerations,
        "topologySpreadConstraints": constraints.topology_spread_constraints,
        "schedulerName": keys.PROXY_SCHEDULER,
        "terminationGracePeriodSeconds": 0,  # no kubelet ends it; its delegate has the grace period of its user
    }
    kept = {name: value for name, value in spec.items() if name not in replaced}
    return kept | {name: value for name, value in replaced.items() if value not in (None, [])}


def _constraints(annotations: dict[str, str], spec: Pod) -> _Constraints:
    """The constraints of the proxy pod: those of its annotation, or else those of its spec, if it says so."""
    if (text := annotations.get(keys.PROXY_CONSTRAINTS)) is not None:
        return _parsed(text)
    if keys.USE_CONSTRAINTS not in annotations:
        return _Constraints()
    return msgspec.convert({n: spec[n] for n in source_pod.CONSTRAINTS if spec.get(n)}, _Constraints)


def _parsed(text: str) -> _Constraints:
    try:
        if len(text) > annotation_json.LONGEST:
            raise ValueError(f"has {len(text)} characters; use at most {annotation_json.LONGEST}")
        # A few aliases can stand for a document of any size.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=_LOADER)):
            raise ValueError("has aliases; write their contents")
        return msgspec.convert(yaml.load(text, Loader=_LOADER) or {}, _Constraints)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problem = " ".join(str(error).split())
        raise Refused(_field(keys.PROXY_CONSTRAINTS), text, f"not a part of a PodSpec: {problem}") from None


def _annotations(pod: Pod) -> dict[str, str]:
    return (pod.get("metadata") or {}).get("annotations") or {}


def _field(key: str) -> str:
    return f"metadata.annotations[{key}]"
