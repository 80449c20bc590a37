"""The way back from a copy to a tenant's object: what the tenant had, as far as its copy shows it.

`kubectl vc recover` uses it for a tenant whose etcd lost its data. Fields of the super cluster (addresses, node ports,
our labels and annotations) are left out. What was not synced down cannot be recovered.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys, stamp, tenant_names
from hansa.model.translation.common import names
from hansa.model.translation.common import services as common_services
from hansa.model.translation.tenant import metadata, services
from hansa.model.translation.tenant.pod import environment

Fields = dict[str, Any]
NO_UID: Final = "nobody"  # of copies without an object in the tenant: placeholders, and what is computed
_CLAIM_FIELDS: Final = (
    *("accessModes", "resources", "storageClassName", "volumeMode", "volumeName", "volumeAttributesClassName"),
)


def upper_of(copy: Object, resource: Resource) -> Object | None:
    """The tenant's object of a copy; None if the copy has none, or if the tenant's own controllers create it."""
    origin, fields = stamp.of(copy), FIELDS[resource]
    if origin is None or is_computed(copy) or _is_generated(copy, origin.name):
        return None
    labels, annotations = _labels(copy, resource), _carried(copy.annotations, stamp.carried(copy)[1])
    found = {"name": origin.name, "namespace": origin.namespace, "labels": labels, "annotations": annotations}
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    return Object.of({**kind, "metadata": {name: value for name, value in found.items() if value}, **fields(copy)})


def is_computed(copy: Object) -> bool:
    """Whether a copy is not that of one object of the tenant, such as a placeholder."""
    origin = stamp.of(copy)
    return origin is not None and origin.uid == NO_UID


def adoption(copy: Object, upper: Object, upper_id: str) -> Fields:
    """The patch that makes a copy that of another upper object; empty if it is already."""
    origin = stamp.of(copy)
    if origin is not None and (origin.upper, origin.uid) == (upper_id, upper.uid):
        return {}
    return _patch(copy, upper_id, {keys.UPPER_UID: upper.uid, keys.TENANT_UID: upper.uid})


def handover(copy: Object, upper_id: str) -> Fields:
    """The patch that leaves a copy to the syncer, as that of a former object of its name; empty if it is already."""
    origin = stamp.of(copy)
    return {} if origin is None or origin.upper == upper_id else _patch(copy, upper_id, {})


def _patch(copy: Object, upper_id: str, annotations: Fields) -> Fields:
    precondition = {"uid": copy.uid, "resourceVersion": copy.version}
    return {"metadata": {**precondition, "labels": {keys.UPPER: upper_id}, "annotations": annotations}}


def _is_generated(copy: Object, name: str) -> bool:
    is_token = names.is_token_secret(name) or keys.TOKEN_NAME in copy.annotations
    return is_token or name == names.ROOT_CA or name in environment.CONFIG_MAPS


def _carried(have: Mapping[str, str], carried: Iterable[str]) -> dict[str, str]:
    kept = (key for key in carried if key in have and key != keys.META and not metadata.is_reserved(key))
    return {key: have[key] for key in kept}


def _labels(copy: Object, resource: Resource) -> dict[str, str]:
    if resource != resources.NAMESPACES:
        return _carried(copy.labels, stamp.carried(copy)[0])
    prefix = f"{keys.NAMESPACE_LABEL}/"
    below = {key.removeprefix(prefix): text for key, text in copy.labels.items() if key.startswith(prefix)}
    return {_label(name): text for name, text in below.items() if len(name) < tenant_names.LONGEST}


def _label(name: str) -> str:
    """The key of a namespace's label: its first "_" was the "/" after a domain. A shortened one cannot be read back."""
    domain, _, rest = name.partition("_")
    return f"{domain}/{rest}" if rest and "." in domain else name


def _only(*names: str) -> Callable[[Object], Fields]:
    return lambda copy: {name: copy.get(name) for name in names if copy.get(name) is not None}


def _claim(copy: Object) -> Fields:
    return {"spec": {name: copy.spec[name] for name in _CLAIM_FIELDS if name in copy.spec}}


def _service(copy: Object) -> Fields:
    """With the addresses and node ports of the tenant, which the copy keeps in annotations."""
    spec = {name: copy.spec[name] for name in (*services.SYNCED_FIELDS, "ipFamilyPolicy") if name in copy.spec}
    address = "None" if copy.spec.get("clusterIP") == "None" else copy.annotations.get(keys.CLUSTER_IP, "")
    chosen = dict(one.split("=", 1) for one in copy.annotations.get(keys.NODE_PORTS, "").split(",") if "=" in one)
    if "ports" in spec:
        ports = common_services.without_node_ports(spec["ports"])
        spec["ports"] = [one | _node_port(chosen.get(f"{one['port']}/{one.get('protocol', 'TCP')}")) for one in ports]
    return {"spec": spec | ({"clusterIP": address} if address else {})}


def _node_port(text: str | None) -> Fields:
    return {"nodePort": int(text)} if text is not None and text.isdecimal() else {}


# In this order: claims and Services need nothing but their namespace.
FIELDS: Final[Mapping[Resource, Callable[[Object], Fields]]] = {
    resources.NAMESPACES: _only(),
    resources.SERVICE_ACCOUNTS: _only(),
    resources.CONFIG_MAPS: _only("data", "binaryData", "immutable"),
    resources.SECRETS: _only("type", "data", "immutable"),
    resources.PERSISTENT_VOLUME_CLAIMS: _claim,
    resources.SERVICES: _service,
}
# Their objects are not recovered. The copies serve the pods of the former tenant.
OTHERS: Final = (
    *(resources.ENDPOINT_SLICES, resources.ENDPOINTS, resources.NETWORK_POLICIES),
    *(resources.INGRESSES, resources.POD_DISRUPTION_BUDGETS),
)
