"""EndpointSlices of a rerouted Service in its own cluster, with its endpoints in other clusters. Pure.

Each target has slices of its own, so that its copy of the Service gets all but these. An endpoint stays in its slice,
so that one change changes one slice.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object, OwnerReference
from hansa.model import diff, keys
from hansa.model.mode import PatchPart
from hansa.model.references import Reference
from hansa.model.translation.common import services
from hansa.model.translation.federation import slice_names
from hansa.model.translation.federation.endpoints import Endpoint, Endpoints, Group, Port

MOST_ENDPOINTS: Final = 100  # of a slice, as the controller of Kubernetes makes them


def slices(service: Object, found: Endpoints, have: Iterable[Object]) -> Iterator[Object]:
    """The slices with these endpoints, by those that there are."""
    existing: dict[Group, list[Object]] = {}
    for one in sorted(have, key=lambda one: one.name):
        existing.setdefault(_group_of(one), []).append(one)
    for group, endpoints in found.groups.items():
        for name, addresses in _packed(service, group, endpoints, existing.get(group, [])).items():
            yield _slice(service, name, group, [endpoints[address] for address in sorted(addresses)])


def patches(have: Object, wanted: Object) -> Iterator[PatchPart]:
    """Patches of a slice."""
    if patch := diff.fields_patch(have, wanted, ("endpoints",)) | diff.labels_patch(have, wanted):
        yield PatchPart(patch)


def service_of(obj: Object) -> Iterator[Reference]:
    """The Service of a slice: without its copy, a slice would belong to a Service of the target."""
    if name := obj.labels.get(keys.SERVICE_NAME):
        yield Reference(resources.SERVICES, obj.namespace, name)


def owners(obj: Object) -> tuple[NamespacedName]:
    """The name of the Service of a slice."""
    return (NamespacedName(obj.namespace, obj.labels.get(keys.SERVICE_NAME, "")),)


def _group_of(one: Object) -> Group:
    ports = (
        Port(port.get("name") or "", port.get("protocol") or "TCP", port.get("port") or 0, port.get("appProtocol"))
        for port in one.get("ports") or ()
    )
    return Group(one.labels.get(keys.ENDPOINTS_OF, ""), one.get("addressType", ""), tuple(ports))


def _packed(
    service: Object, group: Group, endpoints: Collection[str], existing: Iterable[Object]
) -> dict[str, list[str]]:
    """The addresses of each slice, by its name."""
    rest, packed = dict.fromkeys(sorted(endpoints)), dict[str, list[str]]()
    for one in existing:
        packed[one.name] = []
        for address in (endpoint["addresses"][0] for endpoint in one.get("endpoints") or ()):
            if address in rest:
                packed[one.name].append(address)
                del rest[address]
    names = (name for index in range(len(rest) + len(packed)) if (name := _name(service, group, index)) not in packed)
    for address in rest:
        free = next((name for name, held in packed.items() if len(held) < MOST_ENDPOINTS), None) or next(names)
        packed.setdefault(free, []).append(address)
    return {name: addresses for name, addresses in packed.items() if addresses}


def _name(service: Object, group: Group, index: int) -> str:
    return slice_names.named(service.name, f"{service.uid}/{group}/{index}")


def _slice(service: Object, name: str, group: Group, endpoints: list[Endpoint]) -> Object:
    headless = {keys.HEADLESS: ""} if service.spec.get("clusterIP") == "None" else {}
    labels = {keys.SERVICE_NAME: service.name, services.MANAGED_BY: services.MANAGER, keys.ENDPOINTS_OF: group.node}
    ports = [
        {"name": one.name, "protocol": one.protocol, "port": one.port}
        | ({"appProtocol": one.app_protocol} if one.app_protocol else {})
        for one in group.ports
    ]
    made = Object.of(
        {
            "apiVersion": resources.ENDPOINT_SLICES.api_version,
            "kind": "EndpointSlice",
            "metadata": {"namespace": service.namespace, "name": name},
            "addressType": group.family,
            "endpoints": endpoints,
            "ports": ports,
        }
    )
    owner = OwnerReference(api_version="v1", kind="Service", name=service.name, uid=service.uid)
    return made.with_metadata(labels={**labels, **headless, keys.GLOBAL_SERVICE: "true"}, owner_references=(owner,))
