"""Endpoints and EndpointSlices that a tenant's users write: only some of their addresses are synced.

By others, a tenant's Services would lead clients, such as load balancers, to nodes, API servers or other tenants' pods
(CVE-2021-25740). Admitted are addresses of the tenant's pods, of its API server, and of a list.
"""

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys, requests
from hansa.model.lookups import Reads
from hansa.model.pair import Key, Link
from hansa.model.references import Reference
from hansa.model.translation.tenant import address_lists, tenant_settings
from hansa.model.translation.tenant.pod import environment
from hansa.model.translation.tenant.tenant_settings import ApiEndpoint

Spec = dict[str, Any]
SERVICE_NAME: Final = "kubernetes.io/service-name"
_SUBSET_LISTS: Final = ("addresses", "notReadyAddresses")


def admitted_slice(obj: Object, link: Link) -> Object:
    """An EndpointSlice without endpoints whose addresses are not admitted."""
    tenant = tenant_settings.of(link)
    endpoints = [one for one in obj.get("endpoints") or () if _is_admitted(_endpoint(one), obj, link)]
    if obj.key == environment.API_SERVICE and (tenant.is_api_relayed or not endpoints):
        return _of_api_server(obj, tenant.api_endpoints)
    return obj.with_fields(endpoints=endpoints or None)


def _of_api_server(obj: Object, found: tuple[ApiEndpoint, ...]) -> Object:
    """The EndpointSlice of the Service `kubernetes`. The tenant has none if its API server listens on loopback only."""
    family = ipaddress.ip_address(found[0].address).version if found else 4
    alike = [one for one in found if one.port == found[0].port and ipaddress.ip_address(one.address).version == family]
    return obj.with_metadata(labels={**obj.labels, SERVICE_NAME: environment.API_SERVICE.name}).with_fields(
        addressType=f"IPv{family}",
        endpoints=[{"addresses": [one.address], "conditions": {"ready": True}} for one in alike] or None,
        ports=[{"name": "https", "port": one.port, "protocol": "TCP"} for one in alike[:1]] or None,
    )


def admitted_endpoints(obj: Object, link: Link) -> Object:
    """Endpoints without addresses that are not admitted."""
    subsets = [left for one in obj.get("subsets") or () if (left := _admitted_subset(one, obj, link))]
    return obj.with_fields(subsets=subsets or None)


def omitted(obj: Object, link: Link) -> str:
    """Which address is not synced, as a message; empty if all are."""
    if obj.key == environment.API_SERVICE and tenant_settings.of(link).api_endpoints:
        return ""
    for target in _targets(obj):
        if not _is_admitted(target, obj, link):
            tenant = tenant_settings.of(link)
            field = f"address {', '.join(target.addresses)}, which is not that of a pod in its targetRef,"
            return tenant_settings.list_refusal(field, keys.ENDPOINT_ADDRESSES, tenant)
    return ""


def pods_of_namespace(key: Key) -> Iterator[Reference]:
    """Pods may leave their address to others, so endpoints are reconciled when a pod of the namespace changes."""
    if NamespacedName(key.namespace, key.name) != environment.API_SERVICE:
        yield Reference(resources.PODS, key.namespace, "")


def _pods_named(obj: Object) -> Iterator[Reference]:
    for pod in dict.fromkeys(target.pod for target in _targets(obj)):
        if pod:
            yield Reference(resources.PODS, obj.namespace, pod)


READS: Final = Reads(frozenset({resources.PODS}), _pods_named)


class _Target(NamedTuple):
    """The addresses of one endpoint, and the pod of the same namespace that it names."""

    addresses: tuple[str, ...]
    pod: str


def _targets(obj: Object) -> Iterator[_Target]:
    yield from map(_endpoint, obj.get("endpoints") or ())
    for subset in obj.get("subsets") or ():
        for name in _SUBSET_LISTS:
            yield from map(_address, subset.get(name) or ())


def _endpoint(one: Spec) -> _Target:
    return _Target(tuple(one.get("addresses") or ()), _pod_of(one))


def _address(one: Spec) -> _Target:
    return _Target((one["ip"],), _pod_of(one))


def _admitted_subset(subset: Spec, obj: Object, link: Link) -> Spec:
    """The subset with the admitted addresses; empty if it has none, which the API does not allow."""
    found = {n: [one for one in subset.get(n) or () if _is_admitted(_address(one), obj, link)] for n in _SUBSET_LISTS}
    left = {name: addresses for name, addresses in found.items() if addresses}
    return {n: value for n, value in subset.items() if n not in _SUBSET_LISTS} | left if left else {}


def _pod_of(one: Spec) -> str:
    target = one.get("targetRef") or {}
    return str(target.get("name") or "") if target.get("kind") == "Pod" else ""


def _is_admitted(target: _Target, obj: Object, link: Link) -> bool:
    tenant = tenant_settings.of(link)
    own = frozenset(_pod_addresses(target.pod, obj.namespace, link)) if target.pod else frozenset()
    if obj.key == environment.API_SERVICE:
        own |= tenant.api_addresses
    listed = tenant.lists.endpoint_addresses
    return all(one in own or address_lists.has_address(listed, one) for one in target.addresses)


def _pod_addresses(name: str, namespace: str, link: Link) -> Iterable[str]:
    """The addresses of a tenant's pod by the super cluster: a tenant may write any into the status of its own.

    Those of pods in other super clusters, which count with joined networks, are only there.
    """
    pod = link.lookups.lower(resources.PODS, NamespacedName(namespace, name))
    if pod is None and tenant_settings.of(link).are_networks_joined:
        pod = link.lookups.upper(resources.PODS, NamespacedName(namespace, name))
    if pod is None or requests.is_finished(pod) or pod.spec.get("hostNetwork"):
        return ()
    return [one.get("ip", "") for one in pod.status.get("podIPs") or ()]
