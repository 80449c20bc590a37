"""Cluster IPs and node ports: a tenant's Service has those that the super cluster serves."""

import ipaddress

from hansa.kube import resources
from tenant_league import pod

SERVICES = resources.SERVICES
NODE_PORT = {"type": "NodePort", "selector": {"app": "web"}}


def node_ports(service):
    return [port.get("nodePort") for port in service["spec"]["ports"]]


async def test_a_node_port_is_the_same_on_both_sides_and_follows(tenants, blue, namespace):
    made = await blue.make(SERVICES, "web", namespace, spec={**NODE_PORT, "ports": [{"port": 80}]})
    below = await tenants.super.there(SERVICES, "web", blue.below(namespace))
    assert node_ports(below) == node_ports(made)

    grown = [{"name": "a", "port": 80, "nodePort": node_ports(made)[0]}, {"name": "b", "port": 81}]
    await blue.client.patch(SERVICES, "web", {"spec": {"ports": grown}}, namespace=namespace)
    wanted = node_ports(await blue.look(SERVICES, "web", namespace))
    await tenants.super.there(SERVICES, "web", blue.below(namespace), when=lambda s: node_ports(s) == wanted)

    await blue.make(SERVICES, "later", namespace, spec={"selector": {"app": "web"}, "ports": [{"port": 80}]})
    await tenants.super.there(SERVICES, "later", blue.below(namespace))
    await blue.client.patch(SERVICES, "later", {"spec": {"type": "NodePort"}}, namespace=namespace)
    wanted = node_ports(await blue.look(SERVICES, "later", namespace))
    await tenants.super.there(SERVICES, "later", blue.below(namespace), when=lambda s: node_ports(s) == wanted)


async def test_a_node_port_that_another_tenant_has_is_one_that_works_on_both_sides(tenants, blue, green, namespace):
    taken = node_ports(await blue.make(SERVICES, "web", namespace, spec={**NODE_PORT, "ports": [{"port": 80}]}))[0]
    await tenants.super.there(SERVICES, "web", blue.below(namespace))
    ports = [{"name": "a", "port": 80, "nodePort": taken}, {"name": "b", "port": 81}]
    await green.make(SERVICES, "web", namespace, spec={**NODE_PORT, "ports": ports})
    below = node_ports(await tenants.super.there(SERVICES, "web", green.below(namespace)))
    assert taken not in below
    await green.there(SERVICES, "web", namespace, when=lambda s: node_ports(s) == below)
    assert str(taken) in (await green.event("ValueReplaced", "web", namespace))["message"]

    # Asked for again, it is still another's.
    again = [{"name": "a", "port": 80, "nodePort": taken}, {"name": "b", "port": 81, "nodePort": below[1]}]
    await green.client.patch(SERVICES, "web", {"spec": {"ports": again}}, namespace=namespace)
    await green.there(SERVICES, "web", namespace, when=lambda s: node_ports(s) == below)
    assert node_ports(await tenants.super.look(SERVICES, "web", green.below(namespace))) == below


async def test_a_service_whose_cluster_ip_is_taken_in_the_super_cluster_gets_another_that_pods_receive(
    tenants, blue, green, namespace
):
    first = (await blue.there(SERVICES, "kubernetes", "default"))["spec"]["clusterIP"]
    address = str(ipaddress.ip_address(first) + 200)
    await tenants.super.make(
        SERVICES, f"own-{namespace}", "default", spec={"clusterIP": address, "ports": [{"port": 80}]}
    )
    try:
        await blue.make(SERVICES, "web", namespace, spec={"clusterIP": address, "ports": [{"port": 80}]})
        below = (await tenants.super.there(SERVICES, "web", blue.below(namespace)))["spec"]["clusterIP"]
        assert below != address
        annotation = "transparency.tenancy.x-k8s.io/clusterIP"
        await blue.there(
            SERVICES, "web", namespace, when=lambda s: s["metadata"].get("annotations", {}).get(annotation) == below
        )
        assert address in (await blue.event("ValueReplaced", "web", namespace))["message"]
        await blue.make(resources.PODS, "p", namespace, **pod())
        found = await tenants.super.there(resources.CONFIG_MAPS, "services.hansa.dev", blue.below(namespace))
        assert found["data"]["WEB_SERVICE_HOST"] == below
    finally:
        await tenants.super.client.delete(SERVICES, f"own-{namespace}", namespace="default")


async def test_an_address_that_a_deleted_service_had_is_free_for_the_next_one_in_both_clusters(
    tenants, blue, namespace
):
    made = await blue.make(SERVICES, "old", namespace, spec={**NODE_PORT, "ports": [{"port": 80}]})
    await tenants.super.there(SERVICES, "old", blue.below(namespace))
    await blue.client.delete(SERVICES, "old", namespace=namespace)
    same = {name: made["spec"][name] for name in ("type", "clusterIP", "selector", "ports")}
    await blue.make(SERVICES, "new", namespace, spec=same)
    below = await tenants.super.there(SERVICES, "new", blue.below(namespace))
    assert (below["spec"]["clusterIP"], node_ports(below)) == (made["spec"]["clusterIP"], node_ports(made))
