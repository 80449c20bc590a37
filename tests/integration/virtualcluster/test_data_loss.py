"""A tenant whose etcd came back empty: its objects in the super cluster stay, and `kubectl vc recover` adopts them."""

import base64

import pytest

from eventually import eventually
from hansa.kube import resources
from hansa.local import ClusterSpec
from hansa.local.control_plane.etcd import Etcd
from hansa.programs import components
from hansa.tenancy import api
from kubectl_vc import KubectlVc
from tenant_league import clusters_up, pod

pytestmark = pytest.mark.timeout(400)
NAME = "phoenix"
SPEC = ClusterSpec(
    NAME,
    scheduler=False,
    lift_limits=True,
    flags={"kube-controller-manager": ("--controllers=*,-node-lifecycle-controller",)},
)
CLAIM = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}


@pytest.fixture
async def phoenix(tenants, fleet, kubectl):
    """A tenant of its own control plane."""
    async with clusters_up(fleet, kubectl, [SPEC]) as made:
        tenant = await tenants.add(NAME, made[NAME])
        await tenants.super.there(resources.NAMESPACES, tenant.below())
        yield tenant
        await tenants.super.kubectl("delete", "vc", NAME, "--ignore-not-found")
        tenants.tenants.pop(NAME)


async def _lose_data(fleet, tenant):
    """Kill its control plane, delete all of its keys in etcd, and start it again."""
    for component in (components.CONTROLLERS, components.APISERVER):
        await tenant.cluster.process(component).stop()
    await Etcd(fleet.state).delete_prefix(NAME)
    await fleet.up([SPEC])


async def _synced(tenants, reason):
    """Wait until the condition Synced has this reason; its message."""

    async def look():
        found = await tenants.super.client.get(api.VIRTUAL_CLUSTERS, NAME, namespace="default")
        condition = api.virtual_cluster(found).condition(api.ConditionType.SYNCED)
        assert condition is not None, "there is no condition"
        assert condition.reason == reason, condition
        return condition.message

    return await eventually(look, within=90)


POLICY = {"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{}]}
NOT_RECOVERED = (resources.NETWORK_POLICIES, resources.PODS)
LABELS = {"app.kubernetes.io/part-of": "shop", "team": "a_b"}
SECRET = {"data": {"key": base64.b64encode(b"value").decode()}}


async def _make_shop(phoenix):
    """One object of each kind that can be recovered, and a pod; the Service."""
    await phoenix.make(resources.NAMESPACES, "app", metadata={"labels": LABELS})
    await phoenix.make(
        resources.CONFIG_MAPS, "config", "app", metadata={"labels": {"app": "web"}}, data={"colour": "blue"}
    )
    await phoenix.make(resources.SECRETS, "secret", "app", **SECRET)
    await phoenix.make(resources.PERSISTENT_VOLUME_CLAIMS, "data", "app", spec=CLAIM)
    await phoenix.make(resources.NETWORK_POLICIES, "web", "app", spec=POLICY)
    service = await phoenix.make(
        resources.SERVICES, "web", "app", spec={"type": "NodePort", "selector": {"app": "web"}, "ports": [{"port": 80}]}
    )
    await phoenix.there(resources.SERVICE_ACCOUNTS, "default", "app")
    await phoenix.make(resources.PODS, "web-0", "app", **pod(metadata={"labels": {"app": "web"}}))
    await phoenix.phase("web-0", "app")
    return service


async def _uids(below, space):
    """The uids of the copies."""
    return {
        (resource, name): (await below.there(resource, name, space))["metadata"]["uid"]
        for resource, name in (
            (resources.CONFIG_MAPS, "config"),
            (resources.SECRETS, "secret"),
            (resources.PERSISTENT_VOLUME_CLAIMS, "data"),
            (resources.SERVICES, "web"),
            (resources.NETWORK_POLICIES, "web"),
            (resources.PODS, "web-0"),
        )
    }


async def test_a_tenant_that_lost_its_data_keeps_its_objects_and_recovers_them(
    tenants, phoenix, fleet, kubectl, tmp_path
):
    below, space = tenants.super, phoenix.below("app")
    service = await _make_shop(phoenix)
    kept = await _uids(below, space)

    await _lose_data(fleet, phoenix)
    message = await _synced(tenants, "DataLost")
    assert "kubectl vc recover phoenix -n default" in message
    await tenants.stop()
    offset = tenants.log.stat().st_size
    await tenants.start()
    await eventually(lambda: _is_logged(tenants, "tenant lost its data", offset), within=60)
    for (resource, name), uid in kept.items():
        assert (await below.look(resource, name, space))["metadata"]["uid"] == uid, f"{name} was not touched"

    vc = KubectlVc(kubectl, below.cluster.kubeconfig, folder=tmp_path)
    assert "DataLost" in await vc("get", NAME)
    output = await vc("recover", NAME, "--dry-run")
    assert "ConfigMap app/config created (dry run)" in output
    assert await phoenix.look(resources.NAMESPACES, "app") is None
    output = await vc("recover", NAME)
    assert "1 pods that the tenant lost still run (app/web-0)" in output
    await _synced(tenants, "Syncing")
    assert (await phoenix.look(resources.NAMESPACES, "app"))["metadata"]["labels"].items() >= LABELS.items()
    config = await phoenix.look(resources.CONFIG_MAPS, "config", "app")
    assert (config["data"], config["metadata"]["labels"]) == ({"colour": "blue"}, {"app": "web"})
    assert not any("hansa.dev" in key or "tenancy" in key for key in config["metadata"].get("annotations", {}))
    assert (await phoenix.look(resources.SECRETS, "secret", "app"))["data"] == SECRET["data"]
    again = await phoenix.look(resources.SERVICES, "web", "app")
    for field in ("clusterIP", "selector", "ports"):
        assert again["spec"][field] == service["spec"][field]

    await phoenix.client.patch(resources.CONFIG_MAPS, "config", {"data": {"colour": "red"}}, namespace="app")
    await below.there(resources.CONFIG_MAPS, "config", space, when=lambda found: found["data"] == {"colour": "red"})
    policy = await below.look(resources.NETWORK_POLICIES, "web", space)
    assert policy["metadata"]["uid"] == kept[resources.NETWORK_POLICIES, "web"], "it serves the pods that still run"
    await phoenix.make(resources.NETWORK_POLICIES, "web", "app", spec=POLICY | {"ingress": []})
    output = await vc("recover", NAME, "--delete-pods")
    assert "copy of Pod app/web-0 deleted" in output
    await below.there(resources.NETWORK_POLICIES, "web", space, when=lambda found: not found["spec"].get("ingress"))
    await phoenix.make(resources.PODS, "web-0", "app", **pod())
    await phoenix.phase("web-0", "app")
    for (resource, name), uid in kept.items():
        if resource not in NOT_RECOVERED:
            assert (await below.look(resource, name, space))["metadata"]["uid"] == uid, f"{name} was adopted"
    output = await vc("recover", NAME)
    assert "has nothing to recover" in output


async def _is_logged(tenants, text, offset):
    return text in tenants.log.read_bytes()[offset:].decode()
