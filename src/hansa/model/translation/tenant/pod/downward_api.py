"""The downward API: variables and volumes give the tenant's values of a pod's fields.

A field whose value differs in the super cluster is read from an annotation instead, which is kept up to date.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Final

from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.pair import Link
from hansa.model.translation.common.pod.spec import Spec, with_containers, with_volumes
from hansa.model.translation.tenant import metadata, tenant_settings
from hansa.model.translation.tenant.tenant_settings import TenantSettings

_REPLACED_FIELDS: Final = {"metadata.namespace": keys.TENANT_NAMESPACE, "metadata.uid": keys.TENANT_UID}
_FIELD_PATH: Final = re.compile(r"metadata\.(labels|annotations)(?:\['(.+)'\])?")
_RAW_FIELD_PATH: Final = re.compile(rb'"fieldPath":"(metadata\.(?:labels|annotations)[^"]*)"')
_DIGEST_LENGTH: Final = 16


def annotate_field_values(pod: Object, link: Link) -> Object:
    """Copy label and annotation values that fieldRefs read, and that differ in the super cluster, to annotations."""
    tenant = tenant_settings.of(link)
    paths = (_differs_below(path.decode(), tenant) for path in set(_RAW_FIELD_PATH.findall(pod.raw("spec"))))
    copied = {_annotation_key(path): _value(path, pod) for path in paths if path}
    return pod.with_metadata(annotations={**pod.annotations, **copied}) if copied else pod


def rewrite_field_refs(spec: Spec, _pod: Object, link: Link) -> Spec:
    """Rewrite fieldRefs in variables and volumes to read those annotations."""
    tenant = tenant_settings.of(link)

    def holder(one: Spec) -> Spec:
        path = (one.get("fieldRef") or {}).get("fieldPath", "")
        key = _REPLACED_FIELDS.get(path) or (_annotation_key(other) if (other := _differs_below(path, tenant)) else "")
        return one | {"fieldRef": one["fieldRef"] | {"fieldPath": f"metadata.annotations['{key}']"}} if key else one

    def variable(one: Spec) -> Spec:
        return one | {"valueFrom": holder(one["valueFrom"])} if one.get("valueFrom") else one

    def container(one: Spec) -> Spec:
        return one | {"env": [variable(v) for v in one["env"]]} if one.get("env") else one

    def source(one: Spec) -> Spec:
        files = one.get("downwardAPI") or {}
        return (
            one | {"downwardAPI": files | {"items": [holder(f) for f in files["items"]]}} if files.get("items") else one
        )

    def volume(one: Spec) -> Spec:
        projected = one.get("projected") or {}
        if not projected.get("sources"):
            return source(one)
        return one | {"projected": projected | {"sources": [source(s) for s in projected["sources"]]}}

    return with_volumes(with_containers(spec, container), volume)


def _differs_below(path: str, tenant: TenantSettings) -> re.Match[str] | None:
    """The parsed path if its value differs in the super cluster: all labels or annotations, or an opaque one."""
    found = _FIELD_PATH.fullmatch(path)
    if found is None or found[2] is None:
        return found
    is_opaque = metadata.is_opaque_label if found[1] == "labels" else metadata.is_opaque_annotation
    return found if is_opaque(found[2], tenant) else None


def _annotation_key(path: re.Match[str]) -> str:
    return f"{keys.DOWNWARD}/{hashlib.sha256(path[0].encode()).hexdigest()[:_DIGEST_LENGTH]}"


def _value(found: re.Match[str], pod: Object) -> str:
    values: Mapping[str, str] = pod.labels if found[1] == "labels" else pod.annotations
    if found[2] is not None:
        return values.get(found[2], "")
    # The format of kubelets. Our own annotation is left out: it changes with the status, not by the tenant.
    shown = sorted((key, value) for key, value in values.items() if key != keys.LOWER_UID)
    return "\n".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in shown)
