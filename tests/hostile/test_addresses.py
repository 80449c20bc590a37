"""Services by which a tenant would lead clients to nodes, API servers, or pods and Services of others."""

import pytest

from eventually import eventually
from hansa.kube import errors, resources
from hansa.tenancy.syncing.service_ranges import SERVICE_CIDRS
from tenant_league import pod

pytestmark = pytest.mark.timeout(180)
PORTS = [{"port": 80, "protocol": "TCP", "name": ""}]


async def make_slice(tenant, namespace, *endpoints, name="web-1"):
    await tenant.make(
        resources.ENDPOINT_SLICES,
        name,
        namespace,
        metadata={"labels": {"kubernetes.io/service-name": "web"}},
        addressType="IPv4",
        endpoints=[{"addresses": [address]} | more for address, more in endpoints],
        ports=PORTS,
    )


def addresses(copy):
    return [address for one in copy.get("endpoints") or () for address in one["addresses"]]


async def test_endpoints_lead_only_to_own_pods_while_these_live(mallory, alice, below, namespace):
    for tenant in (mallory, alice):
        await tenant.make(resources.PODS, "web", namespace, **pod())
    victim = (await alice.phase("web", namespace))["status"]["podIP"]
    own, node = (await mallory.phase("web", namespace))["status"]["podIP"], "198.51.100.4"
    await mallory.client.patch(
        resources.PODS,
        "web",
        {"status": {"podIP": victim, "podIPs": [{"ip": victim}]}},
        namespace=namespace,
        subresource="status",
    )
    target = {"targetRef": {"kind": "Pod", "name": "web", "namespace": namespace}}
    await mallory.make(resources.SERVICES, "web", namespace, spec={"ports": [{"port": 80}]})
    await make_slice(mallory, namespace, (victim, target), (node, {}), ("192.0.2.1", {}), (own, target))
    event = await mallory.event("Refused", "web-1", namespace)
    assert "allow it with annotation tenancy.x-k8s.io/endpoint-addresses" in event["message"]
    where = mallory.below(namespace)
    await below.there(resources.ENDPOINT_SLICES, "web-1", where, when=lambda found: addresses(found) == [own])
    subsets = [{"addresses": [{"ip": victim, **target}, {"ip": own, **target}], "ports": [{"port": 80}]}]
    await mallory.make(resources.ENDPOINTS, "web", namespace, subsets=subsets)
    copy = await below.there(resources.ENDPOINTS, "web", where)
    assert [one["ip"] for subset in copy["subsets"] for one in subset["addresses"]] == [own]

    await mallory.client.delete(resources.PODS, "web", namespace=namespace)
    await below.there(resources.ENDPOINT_SLICES, "web-1", where, when=lambda found: not addresses(found))


async def test_the_endpoints_of_a_tenants_api_server_are_its_own(mallory, below):
    labels = {"kubernetes.io/service-name": "kubernetes"}
    ports = [{"port": 6443, "protocol": "TCP", "name": "https"}]
    fields = {"addressType": "IPv4", "endpoints": [{"addresses": ["192.0.2.7"]}], "ports": ports}
    await mallory.make(resources.ENDPOINT_SLICES, "kubernetes", "default", metadata={"labels": labels}, **fields)
    await mallory.event("Refused", "kubernetes", "default")
    copy = await below.there(resources.ENDPOINT_SLICES, "kubernetes", mallory.below("default"))
    assert addresses(copy) == []
    await mallory.client.delete(resources.ENDPOINT_SLICES, "kubernetes", namespace="default")


@pytest.mark.parametrize(
    ("fields", "remedy"),
    [
        ({"type": "ExternalName", "externalName": "kube-dns.kube-system.svc.cluster.local"}, "external-names"),
        ({"type": "LoadBalancer", "loadBalancerClass": "example.com/admins"}, "allow=loadBalancerClass"),
        ({"type": "LoadBalancer", "loadBalancerIP": "192.0.2.1"}, "allow=loadBalancerIP"),
        ({"externalIPs": ["192.0.2.1"]}, "allow=externalIPs"),
    ],
    ids=["external-name", "class", "address", "external-address"],
)
async def test_a_service_leads_to_nobody_else(mallory, below, namespace, fields, remedy):
    await mallory.make(resources.SERVICES, "web", namespace, spec={"ports": [{"port": 80}], **fields})
    event = await mallory.event("Refused", "web", namespace)
    assert f"annotation tenancy.x-k8s.io/{remedy}" in event["message"]
    assert await below.look(resources.SERVICES, "web", mallory.below(namespace)) is None


async def test_an_administrator_allows_external_names_for_one_tenant(mallory, alice, below, namespace, annotated):
    spec = {"type": "ExternalName", "externalName": "db.example.com"}
    async with annotated(mallory, "external-names=*.example.com"):
        for tenant in (mallory, alice):
            await tenant.make(resources.SERVICES, "db", namespace, spec=spec)
        await below.there(resources.SERVICES, "db", mallory.below(namespace))
        await alice.event("Refused", "db", namespace)


async def test_a_service_range_of_a_tenant_is_no_range_of_the_super_cluster(mallory, below, namespace):
    await mallory.make(SERVICE_CIDRS, namespace, spec={"cidrs": ["8.8.8.0/24"]})

    def is_ready(found):
        return any(one["type"] == "Ready" for one in found.get("status", {}).get("conditions", ()))

    await mallory.there(SERVICE_CIDRS, namespace, when=is_ready)
    await eventually(lambda: takes_an_address(mallory, namespace), within=60)
    copy = await below.there(resources.SERVICES, "dns", mallory.below(namespace))
    assert not copy["spec"]["clusterIP"].startswith("8.8.8.")
    ranges = [cidr for one in (await below.client.list(SERVICE_CIDRS)).items for cidr in one.spec["cidrs"]]
    assert "8.8.8.0/24" not in ranges
    await mallory.client.delete(resources.SERVICES, "dns", namespace=namespace)
    await mallory.client.delete(SERVICE_CIDRS, namespace)


async def takes_an_address(tenant, namespace):
    try:
        await tenant.make(resources.SERVICES, "dns", namespace, spec={"clusterIP": "8.8.8.8", "ports": [{"port": 53}]})
    except errors.Invalid as error:  # the allocator has not seen the range yet
        raise AssertionError(str(error)) from None
    return True
