"""Each kind is created, updated and deleted: tenant objects are synced down, those of the super cluster up."""

from hansa.kube import resources

PUBLIC = {"labels": {"tenancy.x-k8s.io/super.public": "true"}}


async def test_config_maps_secrets_and_service_accounts_are_created_updated_and_deleted(tenants, blue, namespace):
    below = blue.below(namespace)
    made = {
        resources.CONFIG_MAPS: {"data": {"a": "1"}},
        resources.SECRETS: {"stringData": {"a": "1"}},
        resources.SERVICE_ACCOUNTS: {},
    }
    for resource, fields in made.items():
        await blue.make(resource, "x", namespace, **fields)
        await tenants.super.there(resource, "x", below)
    await blue.client.patch(resources.CONFIG_MAPS, "x", {"data": {"a": "2", "b": "3"}}, namespace=namespace)
    await blue.client.patch(resources.SECRETS, "x", {"data": {"a": "Mg=="}}, namespace=namespace)
    await tenants.super.there(resources.CONFIG_MAPS, "x", below, when=lambda c: c["data"] == {"a": "2", "b": "3"})
    await tenants.super.there(resources.SECRETS, "x", below, when=lambda s: s["data"] == {"a": "Mg=="})
    for resource in made:
        await blue.client.delete(resource, "x", namespace=namespace)
        await tenants.super.gone(resource, "x", below)


async def test_a_lower_copy_that_is_changed_or_deleted_is_restored(tenants, blue, namespace):
    below = blue.below(namespace)
    await blue.make(resources.CONFIG_MAPS, "c", namespace, data={"a": "1"})
    await tenants.super.there(resources.CONFIG_MAPS, "c", below)
    await tenants.super.client.patch(resources.CONFIG_MAPS, "c", {"data": {"a": "x", "z": "z"}}, namespace=below)
    await tenants.super.there(resources.CONFIG_MAPS, "c", below, when=lambda c: c["data"] == {"a": "1"})
    await tenants.super.client.delete(resources.CONFIG_MAPS, "c", namespace=below)
    await tenants.super.there(resources.CONFIG_MAPS, "c", below)


async def test_a_service_has_the_same_address_on_both_sides_and_its_status_is_synced_up(tenants, blue, namespace):
    spec = {"type": "LoadBalancer", "selector": {"app": "w"}, "ports": [{"port": 80}]}
    made = await blue.make(resources.SERVICES, "web", namespace, spec=spec)
    found = await tenants.super.there(resources.SERVICES, "web", blue.below(namespace))
    assert found["spec"]["clusterIP"] == made["spec"]["clusterIP"]
    assert found["spec"]["selector"]["app"] == "w"
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.7"}]}}}
    await tenants.super.client.patch(
        resources.SERVICES, "web", status, namespace=blue.below(namespace), subresource="status"
    )

    def is_synced(service):
        return [one["ip"] for one in service["status"]["loadBalancer"].get("ingress", ())] == ["192.0.2.7"]

    await blue.there(resources.SERVICES, "web", namespace, when=is_synced)


async def test_endpoints_made_by_a_user_are_synced_and_those_of_selectors_come_from_the_super_cluster(
    tenants, blue, namespace
):
    below = blue.below(namespace)
    await blue.make(resources.SERVICES, "outside", namespace, spec={"ports": [{"port": 80}]})
    await blue.make(
        resources.ENDPOINT_SLICES,
        "outside-1",
        namespace,
        metadata={"labels": {"kubernetes.io/service-name": "outside"}},
        addressType="IPv4",
        endpoints=[{"addresses": ["192.0.2.9"]}],
        ports=[{"port": 80, "protocol": "TCP", "name": ""}],
    )
    found = await tenants.super.there(resources.ENDPOINT_SLICES, "outside-1", below)
    assert found["endpoints"][0]["addresses"] == ["192.0.2.9"]
    assert found["metadata"]["labels"]["kubernetes.io/service-name"] == "outside"


async def test_a_claim_is_bound_in_the_super_cluster_and_its_volume_is_synced_up_to_this_tenant_only(
    tenants, blue, green, namespace
):
    below = blue.below(namespace)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
    for tenant in (blue, green):
        await tenant.make(resources.PERSISTENT_VOLUME_CLAIMS, "data", namespace, spec=spec)
    claim = await tenants.super.there(resources.PERSISTENT_VOLUME_CLAIMS, "data", below)
    volume = f"pv-{namespace}"
    await tenants.super.make(
        resources.PERSISTENT_VOLUMES,
        volume,
        spec={
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/data"},
            "storageClassName": "",
            "claimRef": {"namespace": below, "name": "data", "uid": claim["metadata"]["uid"]},
        },
    )
    above = await blue.there(
        resources.PERSISTENT_VOLUME_CLAIMS, "data", namespace, when=lambda c: c["status"]["phase"] == "Bound"
    )
    found = await blue.there(resources.PERSISTENT_VOLUMES, above["spec"]["volumeName"])
    assert found["spec"]["claimRef"]["namespace"] == namespace
    assert found["spec"]["claimRef"]["uid"] == above["metadata"]["uid"]
    assert await green.look(resources.PERSISTENT_VOLUMES, above["spec"]["volumeName"]) is None
    await tenants.super.client.delete(resources.PERSISTENT_VOLUMES, volume)


async def test_public_objects_of_the_super_cluster_are_in_every_tenant_until_they_are_deleted(
    tenants, blue, green, namespace
):
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    kind, group = f"K{namespace.replace('-', '')}", f"{namespace}.example.com"
    crd = {
        "group": group,
        "scope": "Namespaced",
        "names": {"plural": f"{kind.lower()}s", "kind": kind},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    public = (
        (resources.STORAGE_CLASSES, f"fast-{namespace}", {"provisioner": "example.com/disk"}),
        (resources.PRIORITY_CLASSES, f"high-{namespace}", {"value": 1000}),
        (resources.CUSTOM_RESOURCE_DEFINITIONS, f"{kind.lower()}s.{group}", {"spec": crd}),
    )
    await tenants.super.make(resources.STORAGE_CLASSES, f"own-{namespace}", provisioner="example.com/disk")
    for resource, name, fields in public:
        await tenants.super.make(resource, name, metadata=PUBLIC, **fields)
    for tenant in (blue, green):
        for resource, name, _ in public:
            await tenant.there(resource, name)
        assert await tenant.look(resources.STORAGE_CLASSES, f"own-{namespace}") is None
    for resource, name, _ in public:
        await tenants.super.client.delete(resource, name)
    for resource, name, _ in public:
        await green.gone(resource, name)
    await tenants.super.client.delete(resources.STORAGE_CLASSES, f"own-{namespace}")


async def test_all_else_of_a_tenant_stays_in_its_own_control_plane(tenants, blue, namespace):
    await blue.make(resources.ROLES, "r", namespace, rules=[])
    await blue.make(resources.STORAGE_CLASSES, f"mine-{namespace}", provisioner="example.com/mine")
    await blue.make(resources.CONFIG_MAPS, "last", namespace, data={})
    await tenants.super.there(resources.CONFIG_MAPS, "last", blue.below(namespace))
    assert not (await tenants.super.client.list(resources.ROLES, namespace=blue.below(namespace))).items
    assert await tenants.super.look(resources.STORAGE_CLASSES, f"mine-{namespace}") is None
    assert await blue.look(resources.STORAGE_CLASSES, f"mine-{namespace}") is not None
    await blue.client.delete(resources.STORAGE_CLASSES, f"mine-{namespace}")


async def test_ingresses_and_network_policies_are_synced_down_and_name_only_the_tenants_own(
    tenants, blue, green, namespace
):
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    await blue.make(resources.INGRESSES, "i", namespace, spec={"ingressClassName": "edge", "defaultBackend": backend})
    peers = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}, "podSelector": {}}]
    spec = {"podSelector": {"matchLabels": {"app": "x"}}, "ingress": [{"from": peers}]}
    await blue.make(resources.NETWORK_POLICIES, "n", namespace, spec=spec)
    below = await tenants.super.there(resources.INGRESSES, "i", blue.below(namespace))
    assert below["spec"]["defaultBackend"] == backend
    policy = await tenants.super.there(resources.NETWORK_POLICIES, "n", blue.below(namespace))
    selector = policy["spec"]["ingress"][0]["from"][0]["namespaceSelector"]["matchLabels"]
    chosen = (
        await tenants.super.client.list(resources.NAMESPACES, labels=",".join(f"{k}={v}" for k, v in selector.items()))
    ).items
    assert [one.name for one in chosen] == [blue.below(namespace)]
    assert await tenants.super.there(resources.NAMESPACES, green.below(namespace))
