"""Translations of tenants' pods that need two real clusters: lookups, gates and selectors."""

import base64
import json

from eventually import eventually
from hansa.kube import errors, resources
from tenant_league import pod

AUTHS = base64.b64encode(json.dumps({"auths": {}}).encode()).decode()


async def test_a_pod_without_its_pull_secret_gets_an_event_and_runs_when_the_secret_is_created(
    tenants, blue, namespace
):
    spec = pod()["spec"] | {"imagePullSecrets": [{"name": "registry"}]}
    await blue.make(resources.PODS, "p", namespace, spec=spec)
    reported = await blue.event("Refused", "p", namespace)
    assert f"Secret {namespace}/registry not found; create it" in reported["message"]
    secret = {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": AUTHS}}
    await blue.make(resources.SECRETS, "registry", namespace, **secret)
    below = await tenants.super.there(resources.PODS, "p", blue.below(namespace), within=30)  # before the audit
    assert below["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    await blue.phase("p", namespace)


async def test_a_service_finds_pods_by_the_labels_that_charts_use(tenants, blue, namespace):
    labels = {"app.kubernetes.io/name": "web"}
    await blue.make(resources.PODS, "p", namespace, metadata={"labels": labels}, spec=pod()["spec"])
    await blue.make(resources.SERVICES, "web", namespace, spec={"selector": labels, "ports": [{"port": 80}]})
    address = (await blue.phase("p", namespace))["status"]["podIP"]

    async def found():
        slices = (await tenants.super.client.list(resources.ENDPOINT_SLICES, namespace=blue.below(namespace))).items
        ours = [one for one in slices if one.labels.get("kubernetes.io/service-name") == "web"]
        return [a for one in ours for end in one.get("endpoints") or () for a in end["addresses"]] == [address]

    await eventually(found, within=60)


async def test_a_pod_with_scheduling_gates_is_synced_when_they_are_removed(tenants, blue, namespace):
    spec = pod()["spec"] | {"schedulingGates": [{"name": "example.com/quota"}]}
    await blue.make(resources.PODS, "held", namespace, spec=spec)
    await blue.make(resources.PODS, "free", namespace, **pod())
    await blue.phase("free", namespace)
    assert await tenants.super.look(resources.PODS, "held", blue.below(namespace)) is None
    await blue.client.patch(resources.PODS, "held", {"spec": {"schedulingGates": []}}, namespace=namespace)
    await blue.phase("held", namespace)


async def test_a_readiness_gate_is_the_tenants_on_both_sides(tenants, blue, namespace):
    gate = "example.com/open"
    spec = pod()["spec"] | {"readinessGates": [{"conditionType": gate}]}
    await blue.make(resources.PODS, "p", namespace, spec=spec)
    await blue.phase("p", namespace)

    def conditions(found):
        return {one["type"]: one["status"] for one in found["status"].get("conditions") or ()}

    for status in ("True", "False"):

        async def turned(status=status):
            found = await blue.look(resources.PODS, "p", namespace)
            others = [one for one in found["status"].get("conditions") or () if one["type"] != gate]
            patch = {
                "metadata": {"resourceVersion": found["metadata"]["resourceVersion"]},
                "status": {"conditions": [*others, {"type": gate, "status": status}]},
            }
            try:
                await blue.client.patch(resources.PODS, "p", patch, namespace=namespace, subresource="status")
            except errors.Conflict:
                return False
            return True

        await eventually(turned)
        await tenants.super.there(
            resources.PODS,
            "p",
            blue.below(namespace),
            when=lambda found, status=status: conditions(found).get(gate) == status,
        )
        above = await blue.look(resources.PODS, "p", namespace)
        assert conditions(above)[gate] == status


async def test_what_a_pod_reads_about_itself_is_the_tenants(tenants, blue, namespace):
    env = [{"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}]
    container = pod()["spec"]["containers"][0] | {"env": env}
    items = [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]
    spec = pod()["spec"] | {"containers": [container], "volumes": [{"name": "me", "downwardAPI": {"items": items}}]}
    await blue.make(resources.PODS, "p", namespace, metadata={"labels": {"app": "a"}}, spec=spec)
    below = await tenants.super.there(resources.PODS, "p", blue.below(namespace))
    annotations = below["metadata"]["annotations"]

    def value(reference):
        return annotations[reference["fieldRef"]["fieldPath"].removeprefix("metadata.annotations['").removesuffix("']")]

    variables = {one["name"]: one for one in below["spec"]["containers"][0]["env"]}
    assert value(variables["N"]["valueFrom"]) == namespace
    [volume] = [one for one in below["spec"]["volumes"] if one["name"] == "me"]
    assert value(volume["downwardAPI"]["items"][0]) == 'app="a"'
    await blue.client.patch(resources.PODS, "p", {"metadata": {"labels": {"app": "b"}}}, namespace=namespace)
    [key] = [key for key, text in annotations.items() if text == 'app="a"']
    await tenants.super.there(
        resources.PODS,
        "p",
        blue.below(namespace),
        when=lambda found: found["metadata"]["annotations"][key] == 'app="b"',
    )


async def test_ingresses_and_network_policies_are_synced_and_select_only_the_own_tenant(
    tenants, blue, green, namespace
):
    everybody = {"podSelector": {}, "ingress": [{"from": [{"namespaceSelector": {}}]}]}
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    for tenant in (blue, green):
        await tenant.make(resources.NETWORK_POLICIES, "p", namespace, spec=everybody)
    await blue.make(
        resources.INGRESSES, "front", namespace, spec={"ingressClassName": "edge", "defaultBackend": backend}
    )
    found = {}
    for tenant in (blue, green):
        policy = await tenants.super.there(resources.NETWORK_POLICIES, "p", tenant.below(namespace))
        [peer] = policy["spec"]["ingress"][0]["from"]
        selector = ",".join(f"{key}={value}" for key, value in peer["namespaceSelector"]["matchLabels"].items())
        met = (await tenants.super.client.list(resources.NAMESPACES, labels=selector)).items
        found[tenant.key] = {one.annotations["tenancy.x-k8s.io/cluster"] for one in met}
    assert found == {blue.key: {blue.key}, green.key: {green.key}}

    await tenants.super.there(resources.INGRESSES, "front", blue.below(namespace))
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "203.0.113.9"}]}}}
    await tenants.super.client.patch(
        resources.INGRESSES, "front", status, namespace=blue.below(namespace), subresource="status"
    )
    await blue.there(
        resources.INGRESSES,
        "front",
        namespace,
        when=lambda one: one["status"]["loadBalancer"].get("ingress") == [{"ip": "203.0.113.9"}],
    )
    for tenant in (blue, green):
        await tenant.client.delete(resources.NETWORK_POLICIES, "p", namespace=namespace)
        await tenants.super.gone(resources.NETWORK_POLICIES, "p", tenant.below(namespace))
    await tenants.stop()  # who comes next starts it without the setting
