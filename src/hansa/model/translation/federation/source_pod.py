"""The pod as its user created it, which the webhook keeps in an annotation of the proxy pod.

Of the annotation only the constraints count that the webhook replaced in the proxy pod. Everything else is read from
the proxy pod itself: that has passed the admission of the source cluster, while any user who may edit the pod may edit
the annotation.
"""

import functools
from typing import Any, Final

import msgspec

from hansa.kube.objects import Object
from hansa.model import annotation_json, keys

Spec = dict[str, Any]
CONSTRAINTS: Final = ("nodeSelector", "affinity", "tolerations", "topologySpreadConstraints")
# What the webhook replaces in the spec of a proxy pod.
REPLACED: Final = (*CONSTRAINTS, "schedulerName", "terminationGracePeriodSeconds")


LONGEST_REMEMBERED: Final = 8192  # characters


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_selector: dict[str, str] | None = None
    affinity: dict[str, Any] | None = None
    tolerations: list[dict[str, Any]] | None = None
    topology_spread_constraints: list[dict[str, Any]] | None = None
    scheduler_name: str | None = None
    termination_grace_period_seconds: int | None = None


class _Manifest(msgspec.Struct, frozen=True):
    spec: _Spec


def replaced_fields(text: str) -> Spec:
    """What the annotation has of the fields that the webhook replaces; read only. Raises AnnotationJsonError."""
    return _remembered(text) if len(text) <= LONGEST_REMEMBERED else _decoded(text)


@functools.lru_cache(maxsize=1024)  # a pod's manifest is read for each change of the pod
def _remembered(text: str) -> Spec:
    return _decoded(text)


def _decoded(text: str) -> Spec:
    spec = annotation_json.decode(text, _Manifest, longest=annotation_json.WHOLE).spec
    values: Spec = msgspec.to_builtins(spec)
    return {name: value for name, value in values.items() if value is not None}


def check(proxy: Object) -> str:
    """Why a proxy pod has no valid manifest; empty if it has one."""
    try:
        replaced_fields(proxy.annotations.get(keys.SOURCE_POD, ""))
    except annotation_json.AnnotationJsonError as error:
        return f"annotation {keys.SOURCE_POD} is invalid: {error}; delete the pod and create it again"
    return ""


def spec_of(proxy: Object) -> Spec:
    """The spec of the pod as its user created it, with later changes. Raises AnnotationJsonError."""
    spec = {name: value for name, value in proxy.spec.items() if name not in REPLACED}
    return spec | replaced_fields(proxy.annotations.get(keys.SOURCE_POD, ""))


def of(proxy: Object) -> Object:
    """The pod as its user created it, with later changes. Raises AnnotationJsonError."""
    return proxy.with_fields(spec=spec_of(proxy))
