"""tensile-kube's walkthrough with all programs in pods: webhook and descheduler from hack/, the rest from the chart.

One lower cluster has a real node, and another one a simulated node that meets no constraint. It takes one to three
minutes, since the descheduler leaves a refused pod for half a minute.
"""

import asyncio
import base64
import datetime
import json

import pytest
import yaml

from cluster_contents import contents, is_as_before
from eventually import eventually
from hansa.admission import configuration
from hansa.kube import certificates
from hansa.kube.certificates import Subject
from hansa.local import ClusterSpec
from hansa.local.machines import images
from hansa.local.machines.addresses import Networks
from hansa.local.machines.host_network import HostNetwork
from hansa.programs import relay
from hansa.programs.relay import NetnsAddress
from helm import Release
from league import member

pytestmark = [pytest.mark.timeout(600), pytest.mark.soak]
NAMESPACE = "hansa-system"
WITHIN = 150.0  # seconds; images are unpacked when they are first needed, on a machine that may be busy
PORT = 7443  # of the relay to the API server of the cluster with a simulated node
HOST = f"hansa-webhook.{NAMESPACE}.svc"
LOWERS = [{"name": name, "secret": name, "labels": {"clusterID": name}} for name in ("hamburg", "bremen")]
UPPER = {
    "mode": "tensile",
    "virtualNode": {"lowers": LOWERS},
    "webhook": {"enabled": False},
    "multiScheduler": {"enabled": True},
}
LOWER = {"mode": "tensile-lower", "virtualNodeLower": {"rbacControllers": True}}
TOLERATIONS = [{"key": "virtual-kubelet.io/provider", "operator": "Exists"}, {"key": "test", "operator": "Exists"}]
SPEC = {
    "terminationGracePeriodSeconds": 0,
    "nodeSelector": {"disk": "ssd"},
    "tolerations": TOLERATIONS,
    "containers": [{"name": "main", "image": images.BUSYBOX, "args": ["sh", "-c", "echo moin; sleep 1000000"]}],
}
APPLY = """
sed -e "s/\\${caBoudle}/$CA/" -e "s/\\${cert}/$CERT/" -e "s/\\${key}/$KEY/" $REPO/hack/webhook.yaml > webhook.yaml
kubectl apply -f webhook.yaml
kubectl -n hansa-system rollout status deployment hansa-webhook --timeout=150s
kubectl apply -f $REPO/hack/descheduler.yaml
kubectl -n hansa-system rollout status deployment hansa-descheduler --timeout=150s
"""
CLEAN = """
kubectl delete mutatingwebhookconfiguration hansa-cluster-selector --ignore-not-found
kubectl delete -f $REPO/hack/descheduler.yaml -f webhook.yaml --ignore-not-found
kubectl delete node hamburg bremen --ignore-not-found
"""


@pytest.fixture(scope="module")
async def before(lubeck, hamburg):
    return [await contents(one.kubectl) for one in (lubeck, hamburg)]


@pytest.fixture(scope="module")
async def bremen(lubeck, fleet, kubectl, tmp_path_factory):
    """A cluster with a simulated node, and its address for pods."""
    [cluster] = await fleet.up([ClusterSpec("bremen", nodes=1)])
    address = str(Networks(lubeck.cluster.record.slot).control_plane)
    listen = NetnsAddress(HostNetwork(fleet.state.root).host("lubeck", 0), address, PORT)
    [one] = yaml.safe_load(cluster.kubeconfig.read_text())["clusters"]
    dial = NetnsAddress("", "127.0.0.1", int(one["cluster"]["server"].rpartition(":")[2]))
    process = await asyncio.create_subprocess_exec(*relay.command(listen, dial))
    try:
        yield cluster, member(cluster, kubectl).kubectl, f"https://{address}:{PORT}"
    finally:
        process.kill()
        await process.wait()
        await fleet.down(["bremen"])


@pytest.fixture(scope="module")
async def installed(lubeck, hamburg, bremen, before, walk):
    cluster, kubectl, address = bremen
    upper, lower = lubeck.release(NAMESPACE), hamburg.release(NAMESPACE)
    await kubectl("create", "namespace", NAMESPACE)
    await hamburg.kubectl("label", "node", "hamburg-real-1", "disk=ssd")
    async with hamburg.namespace(NAMESPACE), lubeck.namespace(NAMESPACE):
        await lower.upgrade(LOWER)
        await Release(lubeck.helm, cluster.kubeconfig, NAMESPACE).upgrade(LOWER)
        token = await hamburg.token(NAMESPACE, "hansa-virtual-node-token")
        await give(lubeck, "hamburg", hamburg.kubeconfig(token))
        await give(lubeck, "bremen", await kubeconfig(cluster, kubectl, address))
        await upper.upgrade(UPPER)
        yield
        await upper.uninstall()
        await walk(CLEAN)  # with the namespace, which both files have
        await lower.uninstall()
    await hamburg.kubectl("label", "node", "hamburg-real-1", "disk-")
    for one, then in zip((lubeck, hamburg), before, strict=True):
        await is_as_before(one.kubectl, then)


async def give(lubeck, name, config):
    """Store the kubeconfig of a lower cluster."""
    metadata = {"name": name, "namespace": NAMESPACE}
    data = {"kubeconfig": yaml.safe_dump(config)}
    await lubeck.kubectl.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": data})


async def kubeconfig(cluster, kubectl, address):
    """That of the virtual node, at the address for pods."""

    async def token():
        secret = await kubectl.get("-n", NAMESPACE, "secret", "hansa-virtual-node-token")
        return base64.b64decode(secret["data"]["token"]).decode()

    config = yaml.safe_load(cluster.kubeconfig.read_text())
    config["clusters"][0]["cluster"] |= {"server": address, "tls-server-name": "localhost"}
    config["users"][0]["user"] = {"token": await eventually(token)}
    return config


@pytest.fixture(scope="module")
async def deployed(lubeck, installed, walk):
    """The webhook with a certificate of its own, and the descheduler."""
    now = datetime.datetime.now(datetime.UTC)
    ca = certificates.authority("ca", now)
    pair = certificates.issue(ca, Subject(HOST, names=(HOST,)), now)
    parts = {"CA": ca.certificate, "CERT": pair.certificate, "KEY": pair.key}
    await walk(APPLY, **{name: base64.b64encode(data).decode() for name, data in parts.items()})

    async def webhook_is_installed():
        return await lubeck.kubectl.get(configuration.RESOURCE.plural, configuration.DEFAULT_NAME)

    await eventually(webhook_is_installed, within=WITHIN)
    for name in ("hamburg", "bremen"):
        await eventually(lambda name=name: lubeck.kubectl.get("node", name), within=WITHIN)
    await lubeck.kubectl("wait", "node/hamburg", "node/bremen", "--for=condition=Ready", f"--timeout={WITHIN:g}s")


async def test_the_multi_scheduler_sends_a_pod_where_its_constraints_can_be_met(lubeck, hamburg, deployed):
    metadata = {"name": "box", "namespace": "default"}
    spec = SPEC | {"schedulerName": "multi-scheduler"}
    await lubeck.kubectl.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, verb="create")
    await lubeck.kubectl("wait", "pod/box", "--for=condition=Ready", f"--timeout={WITHIN:g}s")
    shown = await lubeck.kubectl.get("pod", "box")
    assert shown["spec"]["nodeName"] == "hamburg"
    assert "nodeSelector" not in shown["spec"]
    parked = json.loads(shown["metadata"]["annotations"]["clusterSelector"])
    assert parked["nodeSelector"] == {"disk": "ssd"}
    assert "test" in {one.get("key") for one in parked["tolerations"]}
    below = (await hamburg.kubectl.get("pod", "box"))["spec"]
    assert (below["nodeName"], below["nodeSelector"]) == ("hamburg-real-1", {"disk": "ssd"})
    assert await lubeck.kubectl("logs", "box") == "moin\n"
    await lubeck.kubectl("delete", "pod", "box", "--timeout=60s")


async def test_the_descheduler_moves_a_pod_that_its_cluster_refuses(lubeck, deployed):
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": SPEC}
    await lubeck.kubectl("cordon", "hamburg")
    await lubeck.kubectl.apply(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        }
    )

    async def is_refused():
        [pod] = (await lubeck.kubectl.get("pods", "-l", "app=web"))["items"]
        [scheduled] = [one for one in pod["status"]["conditions"] if one["type"] == "PodScheduled"]
        assert (pod["spec"].get("nodeName"), scheduled.get("reason")) == ("bremen", "Unschedulable")
        return True

    await eventually(is_refused, within=WITHIN)
    await lubeck.kubectl("uncordon", "hamburg")
    await lubeck.kubectl("rollout", "status", "deployment/web", "--timeout=200s")
    [pod] = (await lubeck.kubectl.get("pods", "-l", "app=web"))["items"]
    assert pod["spec"]["nodeName"] == "hamburg"
    assert pod["metadata"]["annotations"]["hansa.dev/avoids"] == "bremen"
    await lubeck.kubectl("delete", "deployment", "web")
    await lubeck.kubectl("wait", "pod", "-l", "app=web", "--for=delete", "--timeout=60s")
