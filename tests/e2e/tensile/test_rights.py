"""The chart grants what the programs need, and nothing that they don't."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

import kubelet_calls
import programs
from accounts import Account
from eventually import eventually
from hansa.admission import configuration
from league import condition, container, fresh_name, pod

NAMESPACE = "hansa-system"
UPPER = ("virtual-node-upper",)
LOWER = ("virtual-node-lower", "virtual-node-lower-rbac")


@pytest.fixture
async def accounts(league, tmp_path):
    """The service accounts of a virtual node, above and in hamburg; the league's own program rests."""
    await league.stop()
    name = "hansa-virtual-node"
    above = Account(league.upper, NAMESPACE, name, UPPER, tmp_path / "above.kubeconfig")
    below = Account(league.lowers["hamburg"], NAMESPACE, name, LOWER, tmp_path / "below.kubeconfig")
    for one in (above, below):
        await one.settle()
    yield above, below
    for one in (above, below):
        await one.leave()
    await league.upper.kubectl("delete", "node", "vn-least", "--ignore-not-found")


@pytest.mark.timeout(600)
async def test_a_virtual_node_needs_exactly_the_rights_of_the_manifests(league, upper_namespace, accounts, tmp_path):
    above, below = accounts
    flags = [
        *("--nodename", "vn-least", "--kubeconfig", str(above.kubeconfig)),
        *("--client-kubeconfig", str(below.kubeconfig)),
        *("--leader-elect", "--leader-elect-namespace", NAMESPACE),
    ]
    async with programs.hansa("virtual-node", *flags, log=tmp_path / "log"):
        await Everything(league, upper_namespace).happens()
    await league.upper.kubectl("-n", NAMESPACE, "delete", "lease", "--all")
    for one in (above, below):
        await eventually(one.ended)
        assert one.refused() == set()
        assert one.unused() == set()


@dataclass
class Everything:
    """All that can happen to what a virtual node carries."""

    league: Any
    namespace: str

    async def happens(self):
        kube = self.league.upper.kubectl
        await eventually(lambda: self.league.upper.find("node", "vn-least"), within=60)
        disk = await self.made()
        await self.league.phase(self.namespace, "p", within=90)
        await self.kubelet_api()
        await self.league.there(self.below, "rolebinding", "view", namespace=self.namespace)
        await eventually(self.claim_is_bound, within=60)
        await self.changed()
        await eventually(self.changes_are_below, within=60)
        await self.change_below(disk)
        await eventually(lambda: self.changes_are_above(disk), within=60)
        await self.moved()
        await self.below.kubectl("-n", self.namespace, "delete", "pod", "lost", "--wait=false")
        await self.league.gone(self.league.upper, "pod", "lost", namespace=self.namespace)
        await kube("-n", self.namespace, "delete", "service", "web")
        await kube("-n", self.namespace, "delete", "pod", "p")
        await kube("-n", self.namespace, "delete", "pvc", "data")
        for kind, name in (("service", "web"), ("pod", "p"), ("pvc", "data"), ("secret", "s"), ("role", "reader")):
            await self.league.gone(self.below, kind, name, namespace=self.namespace)
        await self.below.kubectl("delete", "pv", disk)
        await self.league.gone(self.league.upper, "pv", disk)

    @property
    def below(self):
        return self.league.lowers["hamburg"]

    async def made(self):
        kube, namespace = self.league.upper.kubectl, self.namespace
        await kube("-n", namespace, "create", "serviceaccount", "robot")
        await kube("-n", namespace, "create", "role", "reader", "--verb=get", "--resource=deployments.apps")
        subject = f"--serviceaccount={namespace}:robot"
        await kube("-n", namespace, "create", "rolebinding", "read", "--role=reader", subject)
        await kube("-n", namespace, "create", "rolebinding", "view", "--clusterrole=view", subject)
        await kube("-n", namespace, "create", "configmap", "c", "--from-literal=k=1")
        await kube("-n", namespace, "create", "secret", "generic", "s", "--from-literal=k=1")
        await kube("-n", namespace, "create", "service", "clusterip", "web", "--tcp=80")
        disk = fresh_name("disk")
        await self.below.kubectl.apply(volume(disk))
        await kube.apply(*({**one, "metadata": {**one["metadata"], "namespace": namespace}} for one in users()))
        return disk

    async def claim_is_bound(self):
        claim = await self.league.upper.find("pvc", "data", namespace=self.namespace)
        return claim["status"].get("phase") == "Bound"

    async def kubelet_api(self):
        """kwok runs no containers, so that the lower API server refuses each call after it has checked the rights."""
        kube = self.league.upper.kubectl
        for line in ("logs p", "exec p -- true", "attach p"):
            with pytest.raises(programs.Refused):
                await kube("-n", self.namespace, *line.split())
        node = (await self.league.upper.find("node", "vn-least"))["status"]
        port = node["daemonEndpoints"]["kubeletEndpoint"]["Port"]
        token = await kube("create", "token", "default")
        status, _ = await kubelet_calls.call(port, "/portForward/x/p?port=80", token=token.strip(), method="POST")
        assert status == 403
        with pytest.raises(programs.Refused):
            await kube("-n", self.namespace, "port-forward", "p", ":80")

    async def changed(self):
        """Everything above is changed."""
        kube, namespace = self.league.upper.kubectl, self.namespace
        await self.report_resources()
        resize = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "200m"}}}]}}
        debug = {"spec": {"ephemeralContainers": [container("debugger")]}}
        for subresource, patch in (("resize", resize), ("ephemeralcontainers", debug)):
            await kube("-n", namespace, "patch", "pod", "p", "--subresource", subresource, "-p", json.dumps(patch))
        for kind, name in KINDS:
            await kube("-n", namespace, "label", kind, name, "changed=yes")

    async def report_resources(self):
        """A pod can be resized only if its kubelet reports the resources of its containers; kwok does not."""
        lower = await self.below.find("pod", "p", namespace=self.namespace)
        lower["status"]["containerStatuses"][0]["resources"] = SMALL
        patch = json.dumps({"status": lower["status"]})
        await self.below.kubectl(
            "-n", self.namespace, "patch", "pod", "p", "--subresource", "status", "--type=merge", "-p", patch
        )

        async def is_reported():
            upper = await self.league.upper.find("pod", "p", namespace=self.namespace)
            return upper["status"]["containerStatuses"][0].get("resources")

        await eventually(is_reported)

    async def changes_are_below(self):
        for kind, name in KINDS:
            copy = await self.below.find(kind, name, namespace=self.namespace)
            assert copy["metadata"]["labels"].get("changed") == "yes", (kind, name)
        slices = await self.below.all("endpointslices", namespace=self.namespace)
        assert any(one["metadata"]["labels"].get("changed") == "yes" for one in slices)
        lower = await self.below.find("pod", "p", namespace=self.namespace)
        assert lower["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "200m"
        return lower["spec"].get("ephemeralContainers")

    async def change_below(self, disk):
        """What others write in the lower cluster: a volume, a claim's status, and an event that comes again."""
        kube = self.below.kubectl
        await kube("label", "pv", disk, "changed=yes")
        growing = {"type": "Resizing", "status": "True"}
        patch = json.dumps({"status": {"conditions": [growing]}})
        await kube("-n", self.namespace, "patch", "pvc", "data", "--subresource", "status", "--type=merge", "-p", patch)
        uid = (await self.below.find("pod", "p", namespace=self.namespace))["metadata"]["uid"]
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "again", "namespace": self.namespace},
            "involvedObject": {"kind": "Pod", "namespace": self.namespace, "name": "p", "uid": uid},
            "reason": "Again",
            "message": "it happened",
            "type": "Normal",
        }
        for count in (1, 2):
            await kube.apply({**event, "count": count})
            await eventually(lambda count=count: self.counted(count))

    async def counted(self, count):
        events = await self.league.upper.all("events", namespace=self.namespace)
        return [one for one in events if one["reason"] == "Again" and one.get("count") == count]

    async def changes_are_above(self, disk):
        shown = await self.league.upper.find("pv", disk)
        claim = await self.league.upper.find("pvc", "data", namespace=self.namespace)
        assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "vn-least"
        return shown["metadata"]["labels"].get("changed") == "yes" and claim["status"].get("conditions")

    async def moved(self):
        """All nodes below are in one region for a while, and one takes no pods."""
        region, node = "topology.kubernetes.io/region", (await self.below.all("nodes"))[0]["metadata"]["name"]
        await self.below.kubectl("cordon", node)
        await self.below.kubectl("label", "nodes", "--all", f"{region}=north")
        await eventually(lambda: self.is_in("north"))
        await self.below.kubectl("label", "nodes", "--all", f"{region}-")
        await self.below.kubectl("uncordon", node)
        await eventually(lambda: self.is_in(None))

    async def is_in(self, region):
        node = await self.league.upper.find("node", "vn-least")
        assert condition(node, "Ready")["message"].startswith("1 of 2" if region else "2 of 2")
        return node["metadata"]["labels"].get("topology.kubernetes.io/region") == region


SMALL = {"requests": {"cpu": "100m"}}
KINDS = [
    *(("pod", "p"), ("configmap", "c"), ("secret", "s"), ("serviceaccount", "robot"), ("pvc", "data")),
    *(("service", "web"), ("role", "reader"), ("rolebinding", "read")),
]


def users():
    """A claim, a pod that refers to all kinds of objects, and one that will be lost."""
    here = {"nodeName": "vn-least"}
    yield {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    volumes = [
        {"name": "c", "configMap": {"name": "c"}},
        {"name": "s", "secret": {"secretName": "s"}},
        {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
    ]
    labels = {"app": "web"}  # as the service selects them
    containers = [container(resources=SMALL)]
    yield pod(
        "p", metadata={"labels": labels}, containers=containers, volumes=volumes, serviceAccountName="robot", **here
    )
    yield pod("lost", **here)


def volume(name):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": "/disk"},
        },
    }


async def test_a_webhook_needs_exactly_the_rights_of_its_manifest(league, upper_namespace, tmp_path):
    account = Account(league.upper, NAMESPACE, "hansa-webhook", ("webhook",), tmp_path / "kubeconfig")
    await account.settle()
    flags = ["webhook", "--kubeconfig", str(account.kubeconfig), "--address", "127.0.0.1", "--port", "0"]
    made = pod("p", nodeSelector={"clusterID": "hamburg", "disk": "ssd"})

    async def parked(name):
        refused = {**made, "metadata": {"name": name}}
        await league.upper.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(refused))
        found = await league.upper.find("pod", name, namespace=upper_namespace)
        return found["spec"]["nodeSelector"] == {"clusterID": "hamburg"}

    try:
        for turn in ("first", "again"):  # the second finds its configuration there
            async with programs.hansa(*flags, log=tmp_path / "log"):
                await eventually(lambda turn=turn: parked(fresh_name(turn)))
    finally:
        await league.upper.kubectl("delete", configuration.RESOURCE.plural, configuration.DEFAULT_NAME)
        await account.leave()
    await eventually(account.ended)
    assert account.refused() == set()
    assert account.unused() == set()
