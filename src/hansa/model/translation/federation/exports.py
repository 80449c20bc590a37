"""The Multi-Cluster Services API: an exported Service as a ServiceImport, with slices and a derived Service. Pure.

The exporting cluster makes the ServiceImport and the slices; both are copied to its targets. Each cluster makes the
derived Service of a ServiceImport itself: its cluster IP is that of the import, and the slices belong to it.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object, OwnerReference
from hansa.kube.resource import Resource
from hansa.model import diff, keys
from hansa.model.mode import PatchPart
from hansa.model.pair import Link
from hansa.model.translation.common import services
from hansa.model.translation.federation import slice_names

GROUP: Final = "multicluster.x-k8s.io"
SERVICE_EXPORTS: Final = Resource(GROUP, "v1alpha1", "serviceexports", kind="ServiceExport")
SERVICE_IMPORTS: Final = Resource(GROUP, "v1alpha1", "serviceimports", kind="ServiceImport")
_PORT_FIELDS: Final = ("name", "protocol", "appProtocol", "port")
_OURS: Final = {services.MANAGED_BY: services.MANAGER}
Spec = dict[str, Any]


def problem(service: Object | None) -> tuple[str, str]:
    """Why a Service can't be exported, as reason and message; empty if it can."""
    if service is None or service.is_deleting:
        return "NoService", "there is no Service of this name in this namespace"
    if service.spec.get("type") == "ExternalName":
        return "InvalidServiceType", "a Service of type ExternalName has no endpoints to export"
    return "", ""


def is_owned(obj: Object, owner: Object) -> bool:
    """Whether an object goes with its owner, which copies of other clusters' objects don't."""
    return any(one.uid == owner.uid for one in obj.metadata.owner_references)


def taken_import(export: Object, imported: Object | None) -> str:
    """Why the ServiceImport of this ServiceExport can't be made; empty if it can."""
    is_taken = imported is not None and not is_owned(imported, export)  # such as by the copy of another cluster's
    return "a ServiceImport of this name exists that is not of this ServiceExport" if is_taken else ""


def taken_service(imported: Object | None, derived: Object | None) -> str:
    """Why the derived Service of this ServiceImport can't be made; empty if it can."""
    if derived is None or (imported is not None and services.is_ours(derived) and is_owned(derived, imported)):
        return ""
    return f"a Service {derived.name} exists that is not the derived Service of this ServiceImport: delete it"


def conflict(taken: str) -> tuple[str, bool, str, str]:
    """The condition that says which name is taken."""
    return "Conflict", bool(taken), "NameTaken" if taken else "NoConflict", taken


def derived_key(name: NamespacedName) -> NamespacedName:
    """The derived Service of the ServiceImport of this name."""
    return NamespacedName(name.namespace, derived_name(name))


def derived_name(name: NamespacedName) -> str:
    """The name of the derived Service of a ServiceImport, the same in each cluster."""
    return f"derived-{slice_names.digest(str(name))}"


def service_import(service: Object, export: Object) -> Object:
    """The ServiceImport of an exported Service, which goes with its ServiceExport."""
    spec = service.spec
    ports = [{name: port[name] for name in _PORT_FIELDS if name in port} for port in spec.get("ports") or ()]
    wanted: Spec = {"type": "Headless" if spec.get("clusterIP") == "None" else "ClusterSetIP", "ports": ports}
    wanted |= {name: spec[name] for name in ("sessionAffinity", "sessionAffinityConfig") if name in spec}
    labels = {**_OURS, keys.GLOBAL_SERVICE: "true"}
    return _made(SERVICE_IMPORTS, service.key, export, SERVICE_EXPORTS, labels).with_fields(spec=wanted)


def exported_slice(one: Object, export: Object, cluster: str) -> Object:
    """A slice of an exported Service as one of the derived Service."""
    labels = {
        **_OURS,
        keys.GLOBAL_SERVICE: "true",
        keys.EXPORTED_SERVICE: export.name,
        keys.EXPORTING_CLUSTER: cluster,
        keys.SERVICE_NAME: derived_name(export.key),
        **{key: one.labels[key] for key in (keys.HEADLESS,) if key in one.labels},
    }
    key = NamespacedName(one.namespace, slice_names.named(one.name, one.uid))
    made = _made(resources.ENDPOINT_SLICES, key, export, SERVICE_EXPORTS, labels)
    bare = services.endpoint_slice(one, Link("", "", ""))
    return made.with_fields(
        addressType=one.get("addressType"), endpoints=bare.get("endpoints") or [], ports=one.get("ports") or []
    )


def derived_service(imported: Object) -> Object:
    """The Service without a selector that gives a ServiceImport its address."""
    spec = imported.spec
    wanted: Spec = {"ports": spec.get("ports") or []}
    wanted |= {name: spec[name] for name in ("sessionAffinity", "sessionAffinityConfig") if name in spec}
    if spec.get("type") == "Headless":
        wanted["clusterIP"] = "None"
    key, labels = derived_key(imported.key), {**_OURS, keys.EXPORTED_SERVICE: imported.name}
    return _made(resources.SERVICES, key, imported, SERVICE_IMPORTS, labels).with_fields(spec=wanted)


def derived_patches(have: Object, wanted: Object) -> Iterable[PatchPart]:
    """The patches of a derived Service."""
    return services.patches(have, wanted, fields=("ports", "sessionAffinity", "sessionAffinityConfig"))


def import_addresses(imported: Object, derived: Object) -> Spec:
    """The patch of a ServiceImport with the addresses of its derived Service; empty if there is none."""
    ips = [ip for ip in derived.spec.get("clusterIPs") or () if ip != "None"]
    return {"spec": {"ips": ips or None}} if (imported.spec.get("ips") or []) != ips else {}


def import_patches(lower: Object, wanted: Object) -> Iterator[PatchPart]:
    """Patches of a ServiceImport, in this cluster or in another. Each cluster has addresses of its own."""
    have = {name: value for name, value in lower.spec.items() if name != "ips"}
    spec = diff.merge_patch(have, wanted.spec)
    if patch := diff.metadata_patch(lower, wanted) | ({"spec": spec} if spec else {}):
        yield PatchPart(patch)


def slice_patches(have: Object, wanted: Object) -> Iterator[PatchPart]:
    """Patches of an exported slice."""
    if patch := diff.fields_patch(have, wanted, ("endpoints", "ports")) | diff.labels_patch(have, wanted):
        yield PatchPart(patch)


def conditions(
    before: list[Spec], wanted: Iterable[tuple[str, bool, str, str]], *, now: str, generation: int
) -> list[Spec]:
    """The conditions of an export or import: type, status, reason and message, with the time of the last change."""
    found = {one["type"]: one for one in before}
    for kind, is_true, reason, message in wanted:
        status = str(is_true)
        had = found.get(kind, {})
        since = had.get("lastTransitionTime", now) if had.get("status") == status else now
        shown = {"type": kind, "status": status, "reason": reason or kind, "message": message}
        found[kind] = shown | {"lastTransitionTime": since, "observedGeneration": generation}
    return list(found.values())


def without_addresses(imported: Object, _link: Link) -> Object:
    """A ServiceImport as it is copied to another cluster."""
    labels = {**imported.labels, **_OURS}
    spec = {name: value for name, value in imported.spec.items() if name != "ips"}
    return imported.with_metadata(labels=labels).with_fields(spec=spec)


def _made(resource: Resource, key: NamespacedName, owner: Object, kind: Resource, labels: dict[str, str]) -> Object:
    """An object of ours that is deleted with its owner."""
    head = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"namespace": key.namespace, "name": key.name},
    }
    reference = OwnerReference(api_version=kind.api_version, kind=kind.kind, name=owner.name, uid=owner.uid)
    return Object.of(head).with_metadata(labels=labels, owner_references=(reference,))
