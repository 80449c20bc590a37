"""What a pod reads about itself: the tenant's values, in variables and in volumes.

A field that is another one below is read from an annotation instead, which follows when the value changes.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Final

from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.pair import Link
from hansa.model.translation.pod.spec import Spec, with_containers, with_volumes
from hansa.model.translation.tenant import metadata, settings
from hansa.model.translation.tenant.settings import Tenant

_NAMED: Final = {"metadata.namespace": keys.TENANT_NAMESPACE, "metadata.uid": keys.TENANT_UID}
_TABLE: Final = re.compile(r"metadata\.(labels|annotations)(?:\['(.+)'\])?")
_PATH: Final = re.compile(rb'"fieldPath":"(metadata\.(?:labels|annotations)[^"]*)"')
_DIGITS: Final = 16


def park_tables(pod: Object, link: Link) -> Object:
    """Put values of labels and annotations that are others below, and are read, into annotations."""
    tenant = settings.of(link)
    paths = (_other(path.decode(), tenant) for path in set(_PATH.findall(pod.raw("spec"))))
    parked = {_parked(path): _value(path, pod) for path in paths if path}
    return pod.with_metadata(annotations={**pod.annotations, **parked}) if parked else pod


def read_as_above(spec: Spec, _pod: Object, link: Link) -> Spec:
    """Let references to fields give what they give above."""
    tenant = settings.of(link)

    def holder(one: Spec) -> Spec:
        path = (one.get("fieldRef") or {}).get("fieldPath", "")
        key = _NAMED.get(path) or (_parked(other) if (other := _other(path, tenant)) else "")
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


def _other(path: str, tenant: Tenant) -> re.Match[str] | None:
    """A path of labels or annotations that gives something else below: a whole table, or what stays above."""
    found = _TABLE.fullmatch(path)
    if found is None or found[2] is None:
        return found
    is_kept_above = metadata.is_kept_above if found[1] == "labels" else metadata.is_annotation_kept_above
    return found if is_kept_above(found[2], tenant) else None


def _parked(path: re.Match[str]) -> str:
    return f"{keys.DOWNWARD}/{hashlib.sha256(path[0].encode()).hexdigest()[:_DIGITS]}"


def _value(found: re.Match[str], pod: Object) -> str:
    table: Mapping[str, str] = pod.labels if found[1] == "labels" else pod.annotations
    if found[2] is not None:
        return table.get(found[2], "")
    # As kubelets write a whole table into a file. Our own note comes and goes with the status.
    told = sorted((key, value) for key, value in table.items() if key != keys.LOWER_UID)
    return "\n".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in told)
