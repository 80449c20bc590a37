"""The chart grants what the programs need, and nothing that they don't."""

import contextlib
import datetime
import json
from dataclasses import dataclass

import pytest

import kubelet_calls
import programs
from accounts import Account
from eventually import eventually
from hansa.kube import certificates, resources
from hansa.kube.objects import NamespacedName
from hansa.model import keys, tenant_names
from hansa.programs import ports
from hansa.tenancy import api, installing
from hansa.tenancy.api import VIRTUAL_CLUSTERS
from league import container, fresh_name
from tenant_league import Side, Tenants

NAMESPACE = "vc-manager"
ELECTED = ("--leader-elect", "--leader-elect-namespace", NAMESPACE)
SHARING = ("--share-tenants", "--leader-elect-namespace", NAMESPACE)
PUBLIC = {"labels": {"tenancy.x-k8s.io/super.public": "true"}}
SMALL = {"requests": {"cpu": "100m"}}
GATE = "example.com/open"

pytestmark = pytest.mark.timeout(600)


def account(member, name, folder, *files):
    return Account(member, NAMESPACE, name, files, folder / f"{name}.kubeconfig")


@contextlib.asynccontextmanager
async def settled(*accounts):
    for one in accounts:
        await one.settle()
    yield
    for one in accounts:
        await one.leave()


async def test_manager_and_syncer_need_exactly_the_rights_of_their_manifests(harbour, guest, tmp_path):
    manager = account(harbour, "vc-manager", tmp_path, "vc-manager")
    syncer = account(harbour, "vc-syncer", tmp_path, "vc-syncer", "super-rights", "vc-syncer-super")
    installs = ("--install=false", "--sample-cluster-versions", "--etcd-storage=emptyDir")
    where = ("--kubeconfig", str(manager.kubeconfig))
    managing = ("vc-manager", *where, "--provisioner", "statefulset", *installs, *ELECTED)
    await installing.install(harbour.client)
    syncing = ("vc-syncer", "--super-master-kubeconfig", str(syncer.kubeconfig), *SHARING)
    more = ("--node-retention", "1", "--endpoint-addresses", "192.0.2.0/24", "--ingress-hosts", "*")
    async with settled(manager, syncer):
        async with (
            programs.hansa(*managing, log=tmp_path / "manager.log"),
            programs.hansa(*syncing, *more, log=tmp_path / "syncer.log"),
        ):
            await eventually(lambda: harbour.find("clusterversion", "cv-sample-np"), within=60)
            await control_plane_lives(harbour)
            await Everything(harbour, guest, fresh_name("guest")).happens()
        for one in (manager, syncer):
            await eventually(one.ended)
            assert one.refused() == set()
        assert manager.unused() == set()
        assert syncer.unused() == {("patch", "leases.coordination.k8s.io")}  # by which those of a pool report


async def test_scheduler_and_syncer_of_a_pool_need_exactly_the_rights_of_their_manifests(harbour, guest, tmp_path):
    scheduler = account(harbour, "vc-scheduler", tmp_path, "vc-scheduler")
    syncer = account(harbour, "vc-syncer", tmp_path, "vc-syncer", "vc-syncer-pool")
    scheduling = ("vc-scheduler", "--kubeconfig", str(scheduler.kubeconfig), "--lost-after", "2", *ELECTED)
    syncing = ("vc-syncer", "--meta-cluster-kubeconfig", str(syncer.kubeconfig), "--pool", "--no-install", *SHARING)
    async with settled(scheduler, syncer):
        async with programs.hansa(*scheduling, log=tmp_path / "scheduler.log"):
            await eventually(lambda: harbour.find("crd", "clusters.cluster.x-k8s.io"), within=60)
            async with programs.hansa(*syncing, "--lost-after", "2", log=tmp_path / "syncer.log"):
                await pod_is_placed(harbour, guest, tmp_path)
            await agent_is_silent(harbour)
        below = Account(harbour, "hansa-system", "hansa-pool", (), tmp_path, since=scheduler.since)
        assert below.requests()
        for one in (scheduler, syncer):
            await eventually(one.ended)
        for one in (scheduler, syncer, below):
            assert one.refused() == set()
        assert scheduler.unused() == set()
        # No failure had to be reported here, unlike for the syncer without a pool.
        assert syncer.unused() <= {("create", "events."), ("patch", "events.")}
    await harbour.kubectl("delete", "clusters.cluster.x-k8s.io", "--all")


async def pod_is_placed(base, tenant, folder):
    """The harbour joins its own pool, and a pod of a tenant runs there."""
    kubeconfig = str(base.cluster.kubeconfig)
    meta = ("--apply", "--without-syncer", "--meta-kubeconfig", kubeconfig)
    joining = await programs.start("join", "r1", "--kubeconfig", kubeconfig, *meta, log=folder / "join.log")
    assert await joining.ended(within=60) == 0, (folder / "join.log").read_text()
    name, space = fresh_name("placed"), fresh_name("space")
    await Tenants(base, folder).announce(name, tenant)
    await tenant.make(resources.NAMESPACES, space)
    await tenant.kubectl("annotate", "namespace", space, f'{keys.SLICE}={{"cpu":"100m"}}')
    await tenant.kubectl("-n", space, "create", "quota", "all", "--hard=cpu=200m")
    await tenant.there(resources.NAMESPACES, space, when=lambda one: keys.PLACEMENTS in one["metadata"]["annotations"])
    await tenant.make(resources.PODS, "p", space, spec={"containers": [container(resources=SMALL)]})
    found = await tenant.phase("p", space)
    assert found["metadata"]["annotations"][keys.SUPER_CLUSTER] == "r1"
    await base.kubectl("delete", "vc", name, "--timeout=60s")
    await tenant.client.delete(resources.NAMESPACES, space)


async def agent_is_silent(base):
    """The super cluster is annotated with an agent twice; there is none, which is reported each time."""
    for count in (1, 2):
        await base.kubectl("annotate", "clusters.cluster.x-k8s.io", "r1", f"{keys.AGENT}=true")

        async def is_reported(count=count):
            found = await base.all("events", namespace="default")
            return [one for one in found if one["reason"] == "AgentNotResponding" and one.get("count", 1) == count]

        await eventually(is_reported, within=60)


async def control_plane_lives(base):
    """A tenant on StatefulSets, whose Secrets the test breaks; its pods are of kwok, and serve nothing."""
    name, admin, inner = fresh_name("made"), "admin-kubeconfig", "controller-manager-kubeconfig"
    made = await base.make(VIRTUAL_CLUSTERS, name, "default", spec={"clusterVersionName": "none"})
    root = api.root_namespace(NamespacedName("default", name), made["metadata"]["uid"])
    for version in ("never", "none", "cv-sample-np"):
        await missing_version_is_reported(base, name)
        wanted = {"spec": {"clusterVersionName": version}}
        await base.client.patch(VIRTUAL_CLUSTERS, name, wanted, namespace="default")
    await base.there(VIRTUAL_CLUSTERS, name, "default", when=lambda vc: vc["status"]["phase"] == "Running")

    good = await base.look(resources.SECRETS, inner, root)
    await base.client.patch(resources.SECRETS, admin, {"data": {admin: "eA=="}}, namespace=root)
    await base.client.delete(resources.SECRETS, inner, namespace=root)
    await base.make(resources.SECRETS, inner, root, type="example.com/other", data=good["data"])
    await base.kubectl("annotate", "vc", name, "look=now")
    await base.there(resources.SECRETS, admin, root, when=lambda one: one["data"] != {admin: "eA=="})
    await base.there(resources.SECRETS, inner, root, when=lambda one: one["type"] == good["type"])
    await base.kubectl("delete", "vc", name, "--timeout=60s")
    await base.gone(resources.NAMESPACES, root)


async def missing_version_is_reported(base, name):
    """Wait until the status names the missing version."""
    vc = await base.look(VIRTUAL_CLUSTERS, name, "default")
    sentence = f'ClusterVersion "{vc["spec"]["clusterVersionName"]}" not found'
    await base.there(
        VIRTUAL_CLUSTERS, name, "default", when=lambda vc: sentence in vc.get("status", {}).get("message", "")
    )


@dataclass
class Everything:
    """All that can happen to what a tenant has."""

    base: Side
    tenant: Side
    name: str
    namespace: str = "work"
    root: str = ""

    @property
    def below(self):
        return f"{self.root}-{self.namespace}"

    async def happens(self):
        await self.joins()
        await self.made()
        await self.tenant.phase("p", self.namespace)
        await self.changed()
        await eventually(self.changes_are_below, within=60)
        await self.offered()
        for resource, name, _ in reversed([*self.things()]):  # Endpoints would go with their Service
            await self.tenant.client.delete(resource, name, namespace=self.namespace)
        for resource, name, _ in self.things():
            await self.base.gone(resource, name, self.below)
        await self.tenant.client.delete(resources.NAMESPACES, self.namespace)
        await self.base.gone(resources.NAMESPACES, self.below)
        await self.base.kubectl("delete", "vc", self.name, "--timeout=120s")
        await self.base.gone(resources.NAMESPACES, f"{self.root}-default")

    async def joins(self):
        kubeconfig = self.tenant.cluster.kubeconfig
        await self.base.kubectl("create", "secret", "generic", self.name, f"--from-file=value={kubeconfig}")
        brought = {"annotations": {"tenancy.x-k8s.io/secret.admin-kubeconfig": self.name}}
        made = await self.base.make(
            VIRTUAL_CLUSTERS,
            self.name,
            "default",
            metadata=brought,
            spec={"clusterVersionName": "cv-sample-np", "serviceCidr": "10.217.0.0/20"},
        )
        self.root = api.root_namespace(NamespacedName("default", self.name), made["metadata"]["uid"])
        await self.tenant.make(resources.NAMESPACES, self.namespace)
        await self.base.there(resources.NAMESPACES, self.below)

    def things(self):
        """Kinds, names and contents of the synced objects; the pod comes last, since it refers to others."""
        serves = {"labels": {"kubernetes.io/service-name": "outside"}}
        ports = [{"port": 80, "protocol": "TCP", "name": ""}]
        disk = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""}
        backend = {"service": {"name": "web", "port": {"number": 80}}}
        volumes = [{"name": "c", "configMap": {"name": "c"}}, {"name": "s", "secret": {"secretName": "s"}}]
        pod = {"containers": [container(resources=SMALL)], "volumes": volumes, "serviceAccountName": "robot"}
        gates = {"readinessGates": [{"conditionType": GATE}]}
        yield resources.CONFIG_MAPS, "c", {"data": {"a": "1"}}
        yield resources.SECRETS, "s", {"stringData": {"a": "1"}}
        yield resources.SERVICE_ACCOUNTS, "robot", {}
        yield resources.SERVICES, "web", {"spec": {"selector": {"app": "w"}, "ports": [{"port": 80}]}}
        yield resources.SERVICES, "outside", {"spec": {"ports": [{"port": 80}]}}
        yield resources.SERVICES, "abroad", {"spec": {"ports": [{"port": 80}]}}
        yield (
            resources.ENDPOINTS,
            "abroad",
            {"subsets": [{"addresses": [{"ip": "192.0.2.8"}], "ports": [{"port": 80}]}]},
        )
        yield (
            resources.ENDPOINT_SLICES,
            "outside-1",
            {
                "metadata": serves,
                "addressType": "IPv4",
                "endpoints": [{"addresses": ["192.0.2.9"]}],
                "ports": ports,
            },
        )
        yield resources.PERSISTENT_VOLUME_CLAIMS, "data", {"spec": disk}
        yield resources.INGRESSES, "i", {"spec": {"ingressClassName": "edge", "defaultBackend": backend}}
        yield resources.NETWORK_POLICIES, "n", {"spec": {"podSelector": {}}}
        yield resources.POD_DISRUPTION_BUDGETS, "b", {"spec": {"selector": {}, "minAvailable": 1}}
        yield resources.PODS, "p", {"spec": pod | gates}

    async def made(self):
        controller = {"spec": {"controller": "example.com/edge"}}
        await self.base.make(resources.INGRESS_CLASSES, "edge", metadata=PUBLIC, **controller)
        for resource, name, fields in self.things():
            await self.tenant.make(resource, name, self.namespace, **fields)
        for resource, name, _ in self.things():
            await self.base.there(resource, name, self.below)

    async def changed(self):
        """Everything above is changed."""
        await self.report_resources()
        status = (await self.tenant.look(resources.PODS, "p", self.namespace))["status"]
        opened = {"type": GATE, "status": "True"}
        resize = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "200m"}}}]}}
        debug = {"spec": {"ephemeralContainers": [container("debugger")]}}
        ready = {"status": {"conditions": [*status["conditions"], opened]}}
        for subresource, patch in (("resize", resize), ("ephemeralcontainers", debug), ("status", ready)):
            await self.tenant.kubectl(
                *("-n", self.namespace, "patch", "pod", "p", "--subresource", subresource, "-p", json.dumps(patch))
            )
        for resource, name, _ in self.things():
            labels = {"metadata": {"labels": {"changed": "yes"}}}
            await self.tenant.client.patch(resource, name, labels, namespace=self.namespace)
        await self.tenant.kubectl("label", "namespace", self.namespace, "changed=yes")

    async def report_resources(self):
        """A pod can be resized only if its kubelet reports the resources of its containers; kwok does not."""

        def is_reported(pod):
            return pod["status"].get("containerStatuses", [{}])[0].get("resources")

        lower = await self.base.there(
            resources.PODS, "p", self.below, when=lambda pod: pod["status"].get("containerStatuses")
        )
        lower["status"]["containerStatuses"][0]["resources"] = SMALL
        patch = {"status": {"containerStatuses": lower["status"]["containerStatuses"]}}
        await self.base.client.patch(resources.PODS, "p", patch, namespace=self.below, subresource="status")
        await self.tenant.there(resources.PODS, "p", self.namespace, when=is_reported)

    async def changes_are_below(self):
        for resource, name, _ in self.things():
            copy = await self.base.look(resource, name, self.below)
            assert copy["metadata"]["labels"].get("changed") == "yes", (resource, name)
        space = await self.base.look(resources.NAMESPACES, self.below)
        assert "yes" in space["metadata"]["labels"].values()
        lower = await self.base.look(resources.PODS, "p", self.below)
        assert lower["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "200m"
        assert any(one["type"] == GATE and one["status"] == "True" for one in lower["status"]["conditions"])
        return lower["spec"].get("ephemeralContainers")

    async def offered(self):
        """Objects of the super cluster for tenants; the name of one is taken, which is reported repeatedly."""
        name, maker = fresh_name("fast"), {"provisioner": "example.com/none"}
        await self.tenant.make(resources.STORAGE_CLASSES, name, **maker)
        await self.base.make(resources.STORAGE_CLASSES, name, metadata=PUBLIC, **maker)
        await eventually(lambda: self.is_reported_again(name), within=60)
        await self.base.client.delete(resources.INGRESS_CLASSES, "edge")
        await self.base.client.delete(resources.STORAGE_CLASSES, name)
        await self.tenant.client.delete(resources.STORAGE_CLASSES, name)

    async def is_reported_again(self, name):
        fields = f"reason=NameTaken,involvedObject.name={name}"
        found = (await self.base.client.list(resources.EVENTS, namespace="default", fields=fields)).items
        return found and found[0].get("count", 1) > 1


async def test_vn_agent_needs_exactly_the_rights_of_its_manifest(harbour, tmp_path):
    """The node is one of kwok, which has no kubelet: that the API server asks it is all that is needed here."""
    agent, port = (
        account(harbour, "vn-agent", tmp_path, "vn-agent", "vn-agent-pods"),
        ports.choose(1, taken=(), seed=str(tmp_path))[0],
    )
    await installing.install(harbour.client)
    name = fresh_name("agent")
    made = await harbour.make(VIRTUAL_CLUSTERS, name, "default", spec={"clusterVersionName": "none"})
    tenant, certificate = await recorded(harbour, name, made["metadata"]["uid"], tmp_path)
    below = tenant_names.super_namespace(tenant, "shop")
    await harbour.make(resources.NAMESPACES, below)
    await harbour.make(resources.PODS, "p", below, metadata=a_stamp(tenant, name), spec={"containers": [container()]})
    await harbour.phase("p", below)
    where = ("--super-master-kubeconfig", str(agent.kubeconfig), "--address", "127.0.0.1", "--port", str(port))
    async with settled(agent):
        async with programs.hansa("vn-agent", *where, log=tmp_path / "vn-agent.log"):

            async def answers(path, method="GET", **headers):
                status, _ = await kubelet_calls.call(
                    port, path, certificate=certificate, method=method, headers=headers
                )
                return status

            async def serves():
                assert await answers("/healthz") == 200
                return True

            await eventually(serves, within=60)
            assert await answers("/pods") == 200
            upgrade = {"Connection": "Upgrade", "Upgrade": "SPDY/3.1", "X-Stream-Protocol-Version": "v4.channel.k8s.io"}
            assert await answers("/containerLogs/shop/p/main") >= 500
            for path in (
                "/exec/shop/p/main?command=ls&output=1",
                "/attach/shop/p/main?output=1",
                "/portForward/shop/p",
            ):
                for method in ("GET", "POST"):
                    assert await answers(path, method, **upgrade) >= 400, path
        await eventually(agent.ended)
        assert (agent.refused(), agent.unused()) == (set(), set())
    await harbour.kubectl("delete", "vc", name)
    await harbour.kubectl("delete", "namespace", below, "--wait=false")


async def recorded(base, name, uid, folder):
    """The key of a tenant whose API server has a certificate, and the certificate with its key as a file."""
    now = datetime.datetime.now(datetime.UTC)
    authority, key = certificates.authority("kubernetes", now), api.root_namespace(NamespacedName("default", name), uid)
    pair = certificates.issue(authority, certificates.Subject(key), now)
    client = {"hashes": [certificates.fingerprint(pair.certificate)], "ca": authority.certificate.decode()}
    status = {"status": {"phase": "Running", "clusterNamespace": key, "kubeletClient": client}}
    await base.client.patch(VIRTUAL_CLUSTERS, name, status, namespace="default", subresource="status")
    (folder / "pair.pem").write_bytes(pair.certificate + pair.key)
    return key, folder / "pair.pem"


def a_stamp(tenant, name):
    """The metadata of the copy of pod shop/p of a tenant."""
    stamp = {keys.UPPER_UID: "u", keys.UPPER_NAME: "shop/p", keys.TENANT_CLUSTER: tenant}
    vc = {keys.VC_NAME: name, keys.VC_NAMESPACE: "default"}
    return {"labels": {keys.UPPER: "upper"} | vc, "annotations": stamp | vc}
