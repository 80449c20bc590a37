"""Translated objects on a real API server: it accepts them, and a second sync writes nothing.

One cluster is both sides: the upper objects live in one namespace, the lower ones in another.
"""

import contextlib
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

import golden_files
from eventually import eventually
from golden_files import Case
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.model.lookups import Found, Lookups
from hansa.model.pair import Key, Link
from hansa.model.translation.tenant.tenant_settings import TenantSettings
from sides import Sides, existing

NOWHERE = {"example.com/no-node": "has-this"}
TOKEN, VOLUME = "tensile/secret/of-a-service-account", "tensile/persistentvolume/of-a-claim"
TENANTS_TOKEN = "virtualcluster/secret/of-a-service-account"
CASES = [case for case in golden_files.cases() if str(case) not in {TOKEN, VOLUME, TENANTS_TOKEN}]


@pytest.fixture
async def below(client: Client) -> AsyncIterator[str]:
    """A namespace that stands for the one of that name in a lower cluster."""
    name = f"below-{secrets.token_hex(4)}"
    await client.create(resources.NAMESPACES, Object.of({"metadata": {"name": name}}))
    yield name
    await client.delete(resources.NAMESPACES, name)


@pytest.fixture
def pod(client: Client, namespace: str, below: str) -> Sides:
    return Sides(client, golden_files.TENSILE, resources.PODS, above=namespace, below=below)


@pytest.mark.parametrize("case", [case for case in CASES if case.rule.resource.namespaced], ids=str)
async def test_the_server_accepts_lower_objects_and_no_patch_is_left(
    client: Client, namespace: str, below: str, case: Case
) -> None:
    sides = Sides(client, case.mode, case.rule.resource, above=namespace, below=below, link=addressed_anew(case.link))
    await sides.create(case.source)

    async def is_alike() -> bool:
        try:
            return await sides.down() == []
        except errors.Conflict:  # kwok wrote the pod's status between our read and our write
            return False

    await eventually(is_alike)


@pytest.mark.parametrize("case", [case for case in CASES if not case.rule.resource.namespaced], ids=str)
async def test_the_server_takes_a_copy_that_has_its_originals_name(client: Client, case: Case) -> None:
    resource, wanted = case.rule.resource, case.desired(case.source)
    copy = await existing(client, resource, wanted)
    try:
        left = list(case.rule.down_patches(copy, wanted))
        for part in left:  # such as the status of a node, which kwok may have written before us
            copy = await client.patch(resource, copy.name, part.patch, subresource=part.subresource)
        assert list(case.rule.down_patches(copy, wanted)) == []
    finally:
        await client.delete(resource, wanted.name)


@pytest.mark.parametrize("token", [TOKEN, TENANTS_TOKEN])
async def test_the_lower_cluster_leaves_a_copied_token_alone(
    client: Client, namespace: str, below: str, token: str
) -> None:
    case = Case(golden_files.ROOT / token)
    sides = Sides(client, case.mode, resources.SECRETS, above=namespace, below=below, link=case.link)
    await sides.create(case.source)

    async def agree() -> bool:
        upper, lower = await sides.upper(), await sides.lower()
        return "ca.crt" in upper.get("data") and upper.get("data") == lower.get("data") and not await sides.down()

    async def follow() -> bool:
        await sides.down()
        return await agree()

    await eventually(follow)  # the upper cluster fills the original in
    assert (await sides.lower()).get("type") == "Opaque"


PODS: dict[str, dict[str, Any]] = {
    "spread by the keys of labels": {
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "a"}},
                "matchLabelKeys": ["version"],
            }
        ]
    },
    "attracted by the keys of labels": {
        "affinity": {
            "podAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 1,
                        "podAffinityTerm": {
                            "topologyKey": "zone",
                            "labelSelector": {"matchLabels": {"app": "a"}},
                            "matchLabelKeys": ["version"],
                            "mismatchLabelKeys": ["tenant"],
                        },
                    }
                ]
            }
        }
    },
    "of a runtime class with overhead": {"runtimeClassName": "heavy"},
    "of a system class": {"priorityClassName": "system-cluster-critical"},
    "on the network of its host": {"hostNetwork": True, "hostPID": True, "dnsPolicy": "ClusterFirstWithHostNet"},
    "with users of its own": {"hostUsers": False, "securityContext": {"runAsUser": 7, "fsGroup": 8}},
    "for an operating system": {"os": {"name": "linux"}},
    "with devices": {
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpus"}],
        "containers": [{"name": "main", "image": "none", "resources": {"claims": [{"name": "gpu"}]}}],
    },
    "with a deadline": {"activeDeadlineSeconds": 60, "terminationGracePeriodSeconds": 0, "restartPolicy": "Never"},
}


@pytest.mark.parametrize("name", PODS)
async def test_pods_of_every_sort_are_taken(client: Client, pod: Sides, name: str) -> None:
    heavy = {"metadata": {"name": "heavy"}, "handler": "heavy", "overhead": {"podFixed": {"cpu": "1"}}}
    await existing(client, resources.RUNTIME_CLASSES, Object.of(heavy))
    spec = {"containers": [{"name": "main", "image": "none"}], "nodeName": "vn1"} | PODS[name]
    metadata = {"name": "pod", "labels": {"app": "a", "version": "1", "tenant": "t"}}
    await pod.create(Object.of({"metadata": metadata, "spec": spec}))
    assert await pod.down() == []


async def test_all_mutable_fields_of_a_pod_are_synced(pod: Sides) -> None:
    size = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2"}}
    containers = [{"name": "main", "image": "none", "resources": size}, {"name": "other", "image": "none"}]
    sidecars = [{"name": "first", "image": "none"}, {"name": "proxy", "image": "none", "restartPolicy": "Always"}]
    spec = {"nodeName": "vn1", "nodeSelector": NOWHERE, "containers": containers, "initContainers": sidecars}
    await pod.create(Object.of({"metadata": {"name": "pod", "labels": {"a": "1", "b": "1"}}, "spec": spec}))

    now = (await pod.upper()).spec
    now["containers"][0]["image"], now["initContainers"][1]["image"] = "newer", "newer"
    added = {"key": "late", "operator": "Exists"}
    shorter = [one | {"tolerationSeconds": 5} for one in now["tolerations"]]
    changed = {name: now[name] for name in ("containers", "initContainers")}
    await pod.change(
        {
            "metadata": {"labels": {"a": "2", "b": None}, "annotations": {"c": "3"}},
            "spec": changed | {"activeDeadlineSeconds": 900, "tolerations": [*shorter, added]},
        }
    )
    bigger = {"requests": {"cpu": "1500m", "memory": "2Gi"}, "limits": {"cpu": "3"}}
    now["containers"][0]["resources"] = bigger
    now["initContainers"][1]["resources"] = {"requests": {"cpu": "10m"}}
    await pod.change({"spec": changed}, "resize")
    await pod.change({"spec": {"ephemeralContainers": [{"name": "look", "image": "none"}]}}, "ephemeralcontainers")

    assert [part.subresource for part in await pod.down()] == ["", "resize", "ephemeralcontainers"]
    assert await pod.down() == []
    upper, lower = await pod.upper(), await pod.lower()
    for field in ("activeDeadlineSeconds", "tolerations"):
        assert lower.spec[field] == upper.spec[field], field
    for field in ("containers", "initContainers", "ephemeralContainers"):
        for theirs, ours in zip(upper.spec[field], lower.spec[field], strict=True):
            assert (ours["image"], ours["resources"]) == (theirs["image"], theirs["resources"])
    assert (lower.labels["a"], lower.labels.get("b"), lower.annotations["c"]) == ("2", None, "3")


async def test_limits_that_the_lower_cluster_adds_are_not_reverted(client: Client, pod: Sides) -> None:
    limit = {"type": "Container", "default": {"cpu": "2", "memory": "1Gi"}, "defaultRequest": {"cpu": "1"}}
    ranges = Object.of({"metadata": {"name": "r", "namespace": pod.below}, "spec": {"limits": [limit]}})
    await client.create(Resource("", "v1", "limitranges", kind="LimitRange"), ranges)
    spec = {"nodeName": "vn1", "nodeSelector": NOWHERE, "containers": [{"name": "main", "image": "none"}]}
    await pod.create(Object.of({"metadata": {"name": "pod"}, "spec": spec}))
    assert (await pod.lower()).spec["containers"][0]["resources"]["limits"] == limit["default"]
    assert await pod.down() == []


async def test_a_status_is_synced_up_in_one_write_and_not_written_again(pod: Sides) -> None:
    spec = {"nodeName": "vn1", "containers": [{"name": "main", "image": "none"}]}
    await pod.create(Object.of({"metadata": {"name": "pod"}, "spec": spec}))

    async def runs() -> bool:
        return (await pod.lower()).status.get("phase") == "Running"

    await eventually(runs)
    mine = {"type": "example.com/mine", "status": "True", "observedGeneration": 1}
    scheduled = {"type": "PodScheduled", "status": "True", "observedGeneration": 1}
    await pod.change({"status": {"conditions": [mine, scheduled]}}, "status")
    assert len(await pod.up()) == 1
    assert await pod.up() == []
    upper, lower = await pod.upper(), await pod.lower()
    assert upper.annotations[keys.LOWER_UID] == lower.uid
    for field in ("phase", "podIP", "podIPs", "hostIP", "hostIPs", "startTime", "containerStatuses"):
        assert upper.status.get(field) == lower.status.get(field), field
    status = {one["type"]: one["status"] for one in upper.status["conditions"]}
    assert status == {one["type"]: one["status"] for one in lower.status["conditions"]} | {"example.com/mine": "True"}


async def test_a_service_is_updated_and_keeps_what_the_lower_cluster_allocated(
    client: Client, namespace: str, below: str
) -> None:
    service = Sides(client, golden_files.TENSILE, resources.SERVICES, above=namespace, below=below)
    ports = [{"name": "a", "port": 80, "targetPort": 8080}, {"name": "b", "port": 81}]
    spec = {"type": "NodePort", "ports": ports, "selector": {"app": "a"}}
    await service.create(Object.of({"metadata": {"name": "door"}, "spec": spec}))
    before = (await service.lower()).spec

    await service.change({"spec": {"ports": [ports[0] | {"targetPort": 9090}, {"name": "c", "port": 82}]}})
    await follows(service)
    after = (await service.lower()).spec
    assert (after["clusterIP"], after["ports"][0]["nodePort"]) == (before["clusterIP"], before["ports"][0]["nodePort"])
    assert [(port["name"], port["targetPort"]) for port in after["ports"]] == [("a", 9090), ("c", 82)]

    await service.change({"spec": {"sessionAffinity": "ClientIP", "internalTrafficPolicy": "Local"}})
    await follows(service)
    assert (await service.lower()).spec["sessionAffinityConfig"] == {"clientIP": {"timeoutSeconds": 10800}}
    await service.change({"spec": {"sessionAffinity": "None", "sessionAffinityConfig": None}})
    await follows(service)

    await service.change({"spec": {"type": "LoadBalancer"}})
    await follows(service)
    assert (await service.lower()).spec["type"] == "ClusterIP"
    assert "nodePort" not in (await service.lower()).spec["ports"][0]


async def test_a_service_may_become_a_name_of_somewhere_else_and_come_back(
    client: Client, namespace: str, below: str
) -> None:
    service = Sides(client, golden_files.TENSILE, resources.SERVICES, above=namespace, below=below)
    await service.create(Object.of({"metadata": {"name": "away"}, "spec": {"ports": [{"port": 80}]}}))
    await service.change({"spec": {"type": "ExternalName", "externalName": "example.com", "clusterIP": None}})
    await follows(service)
    lower = (await service.lower()).spec
    assert (lower["externalName"], lower.get("clusterIP")) == ("example.com", None)
    await service.change({"spec": {"type": "ClusterIP", "externalName": None}})
    await follows(service)
    assert (await service.lower()).spec["clusterIP"] != "None"
    await service.change({"spec": {"type": "ExternalName", "externalName": "example.com", "clusterIP": None}})
    await follows(service)
    await service.change({"spec": {"type": "ClusterIP", "externalName": None, "clusterIP": "None"}})
    await follows(service)
    assert (await service.lower()).spec["clusterIP"] == "None"


async def test_a_volume_synced_up_binds_its_claim_and_names_its_node(
    client: Client, namespace: str, below: str
) -> None:
    waits = {"provisioner": "example.com/none", "volumeBindingMode": "WaitForFirstConsumer"}
    await existing(client, resources.STORAGE_CLASSES, Object.of({"metadata": {"name": "fast"}, **waits}))
    claim = Sides(client, golden_files.TENSILE, resources.PERSISTENT_VOLUME_CLAIMS, above=namespace, below=below)
    size = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await claim.create(Object.of({"metadata": {"name": "data"}, "spec": {"storageClassName": "fast", **size}}))
    assert await claim.up() == []

    case = Case(golden_files.ROOT / VOLUME)
    name = f"volume-{secrets.token_hex(4)}"
    original = case.source.with_metadata(name=name)
    lower_claim = (await claim.lower()).with_fields(spec={"volumeName": name})
    bound = original.spec["claimRef"] | {"namespace": below}
    original = original.with_fields(spec=original.spec | {"claimRef": bound})
    found = {(resources.PERSISTENT_VOLUME_CLAIMS, lower_claim.key): Found(lower_claim, None)}
    link = replace(case.link, lookups=Lookups(found))
    wanted = case.mode.desired(original, Key(link.upper, case.rule.resource, *original.key), link)
    copy = await client.create(resources.PERSISTENT_VOLUMES, wanted)
    try:
        assert list(case.rule.down_patches(copy, wanted)) == []

        async def is_bound() -> bool:
            return (await claim.upper()).status.get("phase") == "Bound"

        await eventually(is_bound)
        status = {"phase": "Bound", "capacity": {"storage": "2Gi"}, "accessModes": ["ReadWriteOnce"]}
        assert [part.subresource for part in await claim.up(status)] == ["", "status"]
        assert await claim.up(status) == []
        upper = await claim.upper()
        assert (upper.annotations[keys.SELECTED_NODE], upper.spec["volumeName"]) == ("vn1", name)
        assert upper.status["capacity"] == {"storage": "2Gi"}
    finally:
        await client.delete(resources.PERSISTENT_VOLUMES, name)


async def test_endpoints_come_and_go(client: Client, namespace: str, below: str) -> None:
    case = Case(golden_files.ROOT / "tensile/endpointslice/of-pods")
    slices = Sides(client, case.mode, resources.ENDPOINT_SLICES, above=namespace, below=below)
    await slices.create(case.source)
    await slices.change({"endpoints": [], "ports": []})
    await follows(slices)
    assert not (await slices.lower()).get("endpoints")
    await slices.change({"endpoints": [{"addresses": ["10.1.2.4"], "nodeName": "vn1"}], "ports": [{"port": 80}]})
    await follows(slices)
    assert (await slices.lower()).get("endpoints") == [{"addresses": ["10.1.2.4"], "conditions": {}}]


async def follows(sides: Sides) -> None:
    """One patch is enough."""
    assert len(await sides.down()) <= 1
    assert await sides.down() == []


def addressed_anew(link: Link) -> Link:
    """Both sides are one cluster here, where two Services cannot have one address."""
    if isinstance(link.settings, TenantSettings):
        return replace(link, settings=replace(link.settings, service_ranges=()))
    return link


async def test_a_lower_service_gets_the_cluster_ip_of_the_tenants_service(
    client: Client, namespace: str, below: str
) -> None:
    spec = {"ports": [{"port": 80}], "selector": {"app.kubernetes.io/name": "web"}, "type": "NodePort"}
    made = Object.of({"metadata": {"name": "web", "namespace": namespace}, "spec": spec})
    upper = await client.create(resources.SERVICES, made)
    await client.delete(resources.SERVICES, "web", namespace=namespace)  # both sides are one cluster
    rule = golden_files.VIRTUALCLUSTER.rules[resources.SERVICES]
    key = Key(golden_files.TENANT.upper, resources.SERVICES, *upper.key)
    wanted = golden_files.VIRTUALCLUSTER.desired(upper, key, golden_files.TENANT).with_metadata(namespace=below)
    lower = await client.create(resources.SERVICES, wanted)
    assert lower.spec["clusterIP"] == upper.spec["clusterIP"]
    assert list(rule.down_patches(lower, wanted)) == []
    assert list(rule.up_patches(upper, lower, golden_files.TENANT)) == []


async def test_a_readiness_gate_set_by_a_tenant_makes_the_lower_pod_ready(
    client: Client, namespace: str, below: str
) -> None:
    case = Case(golden_files.ROOT / "virtualcluster/pod/with-readiness-gates")
    pod = Sides(client, case.mode, resources.PODS, above=namespace, below=below, link=case.link)
    unscheduled = case.source.spec | {"schedulerName": "nobody"}  # above, as in a tenant
    await pod.create(case.source.with_fields(spec=unscheduled))

    async def gate_below(status: str | None) -> bool:
        with contextlib.suppress(errors.Conflict):  # kwok was faster: it is looked at again
            await pod.down()
        lower = (await pod.lower()).status
        conditions = {one["type"]: one["status"] for one in lower.get("conditions") or ()}
        return lower.get("phase") == "Running" and conditions.get("example.com/open") == status

    await eventually(lambda: gate_below(None))  # kwok opens every gate, but this one is the tenant's
    await pod.change({"status": {"conditions": [{"type": "example.com/open", "status": "True"}]}}, "status")
    await eventually(lambda: gate_below("True"))
    await pod.up()
    status = {one["type"]: one["status"] for one in (await pod.upper()).status["conditions"]}
    assert status["example.com/open"] == "True"
