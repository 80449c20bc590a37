"""Mode tensile in pods: a virtual node of lubeck runs pods in hamburg, and its API server calls the webhook."""

import contextlib
import json

import pytest
import yaml

from cluster_contents import contents, is_as_before
from eventually import eventually
from hansa.admission import configuration
from hansa.local.machines import images

pytestmark = pytest.mark.timeout(600)
NAMESPACE = "hansa-system"
WITHIN = 150.0  # seconds; images are unpacked when they are first needed, on a machine that may be busy
NODE = {"name": "hamburg", "secret": "hamburg", "labels": {"clusterID": "hamburg"}}
UPPER = {
    "mode": "tensile",
    "virtualNode": {"lowers": [NODE], "controllers": ["PVControllers", "ServiceControllers"]},
}
TAINT = {"key": "virtual-kubelet.io/provider", "operator": "Exists"}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "box", "namespace": "default"},
    "spec": {
        "terminationGracePeriodSeconds": 0,
        "nodeSelector": {"clusterID": "hamburg", "kubernetes.io/os": "linux"},
        "tolerations": [TAINT],
        "containers": [{"name": "main", "image": images.BUSYBOX, "args": ["sh", "-c", "echo moin; sleep 1000000"]}],
    },
}


@pytest.fixture(scope="module")
async def before(lubeck, hamburg):
    return [await contents(one.kubectl) for one in (lubeck, hamburg)]


@pytest.fixture(scope="module")
async def installed(lubeck, hamburg, before):
    upper, lower = lubeck.release(NAMESPACE), hamburg.release(NAMESPACE)
    async with hamburg.namespace(NAMESPACE), lubeck.namespace(NAMESPACE):
        await lower.upgrade({"mode": "tensile-lower"})
        secret = await hamburg.token(NAMESPACE, "hansa-virtual-node-token")
        kubeconfig = yaml.safe_dump(hamburg.kubeconfig(secret))
        await lubeck.kubectl.apply(
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": "hamburg", "namespace": NAMESPACE},
                "stringData": {"kubeconfig": kubeconfig},
            }
        )
        await upper.upgrade(UPPER)
        yield upper, lower
        with contextlib.suppress(AssertionError):  # a test uninstalled them
            await upper.uninstall()
            await lower.uninstall()


async def test_a_pod_runs_in_the_lower_cluster_after_the_webhook_moved_its_constraints(lubeck, hamburg, installed):
    async def webhook_is_installed():
        return await lubeck.kubectl.get(configuration.RESOURCE.plural, configuration.DEFAULT_NAME)

    async def node_is_there():
        return await lubeck.kubectl.get("node", "hamburg")

    await eventually(webhook_is_installed, within=WITHIN)
    await eventually(node_is_there, within=WITHIN)
    await lubeck.kubectl("wait", "node/hamburg", "--for=condition=Ready", f"--timeout={WITHIN:g}s")
    await lubeck.kubectl.apply(POD, verb="create")
    await lubeck.kubectl("wait", "pod/box", "--for=condition=Ready", f"--timeout={WITHIN:g}s")
    shown = await lubeck.kubectl.get("pod", "box")
    assert shown["spec"]["nodeName"] == "hamburg"
    assert "kubernetes.io/os" in json.loads(shown["metadata"]["annotations"]["clusterSelector"])["nodeSelector"]
    assert (await hamburg.kubectl.get("pod", "box"))["spec"]["nodeName"] == "hamburg-real-1"
    assert await lubeck.kubectl("logs", "box") == "moin\n"


async def test_a_killed_leader_is_replaced_and_the_webhook_answers_meanwhile(lubeck, installed):
    leases = (await lubeck.kubectl.get("-n", NAMESPACE, "leases"))["items"]
    [holder] = [one["spec"]["holderIdentity"].split("_")[0] for one in leases]
    [webhook, *_] = [name for name in await lubeck.pods(NAMESPACE) if name.startswith("hansa-webhook")]
    await lubeck.kubectl("-n", NAMESPACE, "delete", "pod", holder, webhook, "--force", "--grace-period=0")
    await lubeck.kubectl("run", "again", "--image=example.com/none:1", "--dry-run=server", "-o", "name")

    async def another_leads():
        [lease] = (await lubeck.kubectl.get("-n", NAMESPACE, "leases"))["items"]
        assert not lease["spec"]["holderIdentity"].startswith(holder)
        return True

    await eventually(another_leads, within=60)

    async def has_logs():  # at the address of the new leader
        code, out, err = await lubeck.kubectl.run("logs", "box", "--request-timeout=10s")
        assert (code, out) == (0, b"moin\n"), err
        return True

    await eventually(has_logs, within=90, every=1.0)


async def test_uninstallation_leaves_both_clusters_as_they_were(lubeck, hamburg, before, installed):
    await lubeck.kubectl("delete", "pod", "box", "--timeout=60s")
    for release in installed:
        await release.uninstall()
    await lubeck.kubectl("delete", "node", "hamburg")
    for one in (lubeck, hamburg):
        await one.kubectl("delete", "namespace", NAMESPACE, "--timeout=120s")
    for one, then in zip((lubeck, hamburg), before, strict=True):
        await is_as_before(one.kubectl, then)
