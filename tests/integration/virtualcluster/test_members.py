"""VirtualClusters of a real API server become members of the registry, and what they leave is removed."""

import base64
import contextlib
import ipaddress
import json
from datetime import UTC, datetime, timedelta

import pytest

from eventually import eventually
from hansa.app.program import Program
from hansa.control import event_recorder
from hansa.engine.registry import ClusterRegistry, Route
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.tenancy import installing
from hansa.tenancy.syncing import service_ranges
from hansa.tenancy.syncing.conditions import TenantConditions
from hansa.tenancy.syncing.members import Members
from hansa.tenancy.syncing.owners import Owner
from hansa.tenancy.syncing.purging import Purging
from hansa.tenancy.syncing.super_clusters import NEVER, SuperClusters
from league import fresh_name
from tenant_league import Tenants


@pytest.fixture
async def meta(clusters, tmp_path):
    """Members and purging in this process, over a registry without a syncer, in a cluster of their own."""
    await installing.install(clusters["spare"].client)
    tenants = Tenants(clusters["spare"], tmp_path)
    program, registry = Program(), ClusterRegistry()
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(clusters["spare"].cluster.client("hansa-test-members"))
        supervisor = await stack.enter_async_context(program.manager.supervisor)
        cluster = program.cluster("super", client)
        stack.push_async_callback(cluster.close)
        supers = SuperClusters(
            registry,
            lambda tenancy, lower, served: Route(tenancy.owner.key, lower, (tenancy, served.ranges)),
            lost_after=NEVER,
            clock=program.clock,
        )
        registry.join(supers.add(cluster))
        recorder = event_recorder.Recorder("hansa-vc-syncer", client, **program.common())
        meta_id = await cluster.identify()
        members = Members(
            registry,
            cluster.informers,
            meta_id,
            conditions=TenantConditions(client, recorder, clock=program.clock),
            connect=lambda _key, login: Client(login, user_agent="hansa-test-members"),
            join=program.cluster,
            routes=supers.routes,
            **program.common(),
        )
        supers.changed = members.enqueue_all
        purging = Purging(client, cluster.informers, meta_id, super_cluster=cluster, **program.common())
        for part in (recorder, members, purging):
            supervisor.start(type(part).__name__, part.run)
            stack.callback(part.drain)
        yield tenants, registry, meta_id
        # What a test that failed left must not fail the next one.
        await tenants.super.kubectl("delete", "vc", "--all")


async def is_linked(registry, key):
    async def look():
        return registry.routes(key)

    [route] = await eventually(look)
    return route


async def test_a_running_tenant_takes_part_and_keeps_its_service_range_until_it_is_gone(meta, clusters):
    tenants, registry, _ = meta
    name = fresh_name("vc")
    tenant = await tenants.add(name, clusters["blue"])
    route = await is_linked(registry, tenant.key)
    [cidr] = (await tenant.kubectl.get("servicecidr", "kubernetes"))["spec"]["cidrs"]
    tenancy, ranges = route.settings
    assert ranges == (ipaddress.ip_network(cidr),)
    assert tenancy.server == clusters["blue"].cluster.server
    made = await tenants.super.kubectl.get("servicecidr", f"{tenant.key}-kubernetes")
    assert made["spec"]["cidrs"] == [cidr]
    await tenants.super.kubectl("wait", f"vc/{name}", "--for=condition=Synced", "--timeout=30s")

    await tenants.super.kubectl("delete", "vc", name)
    await tenants.super.gone(service_ranges.SERVICE_CIDRS, f"{tenant.key}-kubernetes")
    assert tenant.key not in registry.clusters


async def test_a_tenant_without_credentials_is_not_synced_until_they_are_created(meta, clusters):
    tenants, registry, _ = meta
    name = fresh_name("vc")
    key = await tenants.announce(name, clusters["green"])
    await tenants.super.kubectl("annotate", "vc", name, "tenancy.x-k8s.io/admin-kubeconfig=bm90aGluZw==", "--overwrite")
    await tenants.super.kubectl("wait", f"vc/{name}", "--for=condition=Synced=false", "--timeout=30s")
    await tenants.super.kubectl("annotate", "vc", name, "tenancy.x-k8s.io/admin-kubeconfig-")

    async def is_reported():
        found = await tenants.super.kubectl.get("vc", name)
        reported = {one["type"]: one["reason"] for one in found["status"]["conditions"]}
        assert reported["Synced"] == "NoCredentials", reported
        warnings = await tenants.super.all("events", namespace="default")
        assert ("NoCredentials", name) in {(one["reason"], one["involvedObject"].get("name")) for one in warnings}
        return True

    await eventually(is_reported)
    await tenants.super.kubectl("create", "namespace", key)
    kubeconfig = clusters["green"].cluster.kubeconfig
    await tenants.super.kubectl(
        "-n", key, "create", "secret", "generic", "admin-kubeconfig", f"--from-file=admin-kubeconfig={kubeconfig}"
    )
    await is_linked(registry, key)
    await tenants.super.kubectl("wait", f"vc/{name}", "--for=condition=Synced", "--timeout=30s")
    await tenants.super.kubectl("delete", "vc", name)
    await tenants.super.kubectl("delete", "namespace", key, "--wait=false")


async def test_a_tenant_that_does_not_answer_is_reported_and_keeps_its_objects(meta, clusters):
    tenants, _, meta_id = meta
    name = fresh_name("vc")
    key = await tenants.announce(name, clusters["green"])
    dead = (
        clusters["green"]
        .cluster.kubeconfig.read_text()
        .replace(clusters["green"].cluster.server, "https://127.0.0.1:1")
    )
    encoded = base64.b64encode(dead.encode()).decode()
    await tenants.super.kubectl("annotate", "vc", name, f"tenancy.x-k8s.io/admin-kubeconfig={encoded}", "--overwrite")
    uid = (await tenants.super.kubectl.get("vc", name))["metadata"]["uid"]
    await tenants.super.kubectl.apply(namespace(f"{key}-kept", Owner(key, "default", name, uid, meta_id)))
    await tenants.super.kubectl("wait", f"vc/{name}", "--for=condition=Synced=false", "--timeout=30s")
    found = await tenants.super.kubectl.get("vc", name)
    assert "Unreachable" in json.dumps(found["status"]["conditions"])
    assert (await tenants.super.find("namespace", f"{key}-kept"))["status"]["phase"] == "Active"
    await tenants.super.kubectl("delete", "vc", name)
    await tenants.super.gone(resources.NAMESPACES, f"{key}-kept")


async def test_only_what_belonged_to_a_tenant_that_is_gone_is_removed(meta, clusters):
    tenants, registry, meta_id = meta
    name = fresh_name("vc")
    tenant = await tenants.add(name, clusters["blue"])
    await is_linked(registry, tenant.key)
    uid = (await tenants.super.kubectl.get("vc", name))["metadata"]["uid"]
    owners = {
        "of-the-tenant": Owner(tenant.key, "default", name, uid, meta_id),
        "of-a-former-life": Owner(tenant.key, "default", name, "another-uid", meta_id),
        "of-another-meta-cluster": Owner(tenant.key, "default", "unknown", "uid", "another-meta"),
    }
    for one, owner in owners.items():
        await tenants.super.kubectl.apply(namespace(f"{name}-{one}", owner))
    await tenants.super.kubectl("create", "namespace", f"{name}-of-nobody")
    await tenants.super.gone(resources.NAMESPACES, f"{name}-of-a-former-life")
    await tenants.super.there(resources.NAMESPACES, f"{name}-of-the-tenant")
    await tenants.super.kubectl("delete", "vc", name)
    await tenants.super.gone(resources.NAMESPACES, f"{name}-of-the-tenant")
    for kept in ("of-another-meta-cluster", "of-nobody"):
        assert (await tenants.super.find("namespace", f"{name}-{kept}"))["status"]["phase"] == "Active"
        await tenants.super.kubectl("delete", "namespace", f"{name}-{kept}", "--wait=false")


async def test_one_control_plane_is_one_tenant_and_never_the_super_cluster_itself(meta, clusters):
    tenants, registry, _ = meta
    first, second, itself = (fresh_name("vc") for _ in range(3))
    tenant = await tenants.add(first, clusters["blue"])
    await is_linked(registry, tenant.key)
    await eventually(lambda: is_older(tenants, first))
    other = await tenants.announce(second, clusters["blue"])
    own = await tenants.announce(itself, clusters["spare"])
    for name, reason in ((second, "SameCluster"), (itself, "IsSuperCluster")):
        reported = f"--for=jsonpath={{.status.conditions[?(@.type=='Synced')].reason}}={reason}"
        await tenants.super.kubectl("wait", f"vc/{name}", reported, "--timeout=60s")
    assert not registry.routes(other)
    assert not registry.routes(own)
    await tenants.super.kubectl("delete", "vc", first)
    await is_linked(registry, other)
    await tenants.super.kubectl("delete", "vc", second, itself)


async def is_older(tenants, name):
    """Whether a second is over since a VirtualCluster was made: of two of the same second neither is the older."""
    made = (await tenants.super.kubectl.get("vc", name))["metadata"]["creationTimestamp"]
    return datetime.now(UTC) - datetime.fromisoformat(made) > timedelta(seconds=1)


async def test_an_invalid_annotation_is_reported_in_a_condition_until_it_is_fixed(meta, clusters):
    tenants, registry, _ = meta
    name = fresh_name("vc")
    tenant = await tenants.add(name, clusters["blue"], weight="much", allow="hostPath,everything")
    await is_linked(registry, tenant.key)
    await tenants.super.kubectl("wait", f"vc/{name}", "--for=condition=InvalidAnnotations", "--timeout=60s")
    [reported] = [one for one in await conditions(tenants, name) if one["type"] == "InvalidAnnotations"]
    assert 'weight: "much" is not a number' in reported["message"]
    assert 'allow: unknown allowance "everything"' in reported["message"]
    event = await tenants.super.event("InvalidAnnotation", name)
    assert (event["type"], event["message"]) == ("Warning", reported["message"])

    mended = ("tenancy.x-k8s.io/weight=2", "tenancy.x-k8s.io/allow=hostPath")
    await tenants.super.kubectl("annotate", "vc", name, "--overwrite", *mended)

    async def is_mended():
        return {one["type"] for one in await conditions(tenants, name)} == {"Synced"}

    await eventually(is_mended, within=60)
    await tenants.super.kubectl("delete", "vc", name)


async def test_super_clusters_of_an_existing_cluster_are_recorded_in_its_status_before_they_are_linked(meta, clusters):
    tenants, registry, meta_id = meta
    name = fresh_name("vc")
    tenant = await tenants.add(name, clusters["blue"])
    await is_linked(registry, tenant.key)
    assert (await tenants.super.kubectl.get("vc", name))["status"]["superClusters"] == [meta_id]
    await tenants.super.kubectl("delete", "vc", name)


async def conditions(tenants, name):
    return (await tenants.super.kubectl.get("vc", name))["status"]["conditions"]


def namespace(name, owner):
    """A namespace as the syncer makes it."""
    metadata = {"name": name, "labels": {"hansa.dev/upper": "somebody"}, "annotations": owner.annotations()}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
