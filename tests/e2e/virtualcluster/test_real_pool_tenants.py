"""A tenant of a pool on real nodes: its API server in the meta cluster, its pods in a cluster with another network.

Pods of the super cluster reach the nodes of the meta cluster, but no pod and no Service there.
"""

import json

import pytest

import programs
import real_machine
import real_tenants
from eventually import eventually
from hansa.local import ClusterSpec
from hansa.local.machines import images
from programs import Kubectl, Refused

SLICE = '{"cpu":"100m","memory":"64Mi"}'
SMALL = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}}

pytestmark = pytest.mark.timeout(500)  # two clusters with real nodes, on a machine that may be busy


@pytest.fixture(scope="module")
async def lab(fleet, kubectl, tmp_path_factory):
    """The meta cluster with manager, scheduler and syncer, and a super cluster that joined."""
    folder = tmp_path_factory.mktemp("pool-tenants")
    real_machine.tools(folder)
    archive = await real_tenants.archive(fleet, folder / "control-plane.tar")
    meta, below = await fleet.up(
        [ClusterSpec("port", real_nodes=1, images=(str(archive),)), ClusterSpec("yard", real_nodes=1)]
    )
    try:
        async with real_tenants.opened(meta, fleet, kubectl, folder) as lab:
            where = ("--kubeconfig", str(lab.kubeconfig))
            managing = ("--provisioner=statefulset", "--kubeconfig-address=nodePort", "--etcd-storage=emptyDir")
            await lab.start("vc-manager", *where, *managing)
            await lab.start("vc-scheduler", *where)
            pool = ("--meta-cluster-kubeconfig", str(lab.kubeconfig), "--pool")
            await lab.start("vc-syncer", *pool, f"--tenant-dns-image={images.COREDNS}")
            await join(lab, below, folder)
            lab.below = Kubectl(kubectl, below.kubeconfig)
            yield lab
    finally:
        await fleet.down(["port", "yard"])


async def join(lab, below, folder):
    inner, log = real_tenants.inner_kubeconfig(below, folder), folder / "join.log"
    flags = ("--kubeconfig", str(inner), "--apply", "--without-syncer", "--meta-kubeconfig", str(lab.kubeconfig))
    joining = await programs.start("join", "yard", *flags, log=log, netns=lab.netns)
    assert await joining.ended(within=60) == 0, log.read_text()


async def test_pods_of_a_pool_have_a_dns_and_their_api_server_across_networks(lab):
    tenant = await lab.create("blue")
    await tenant.kubectl("annotate", "namespace", "default", f"scheduler.tenancy.x-k8s.io/slice={SLICE}")
    await tenant.kubectl("create", "quota", "all", "--hard=cpu=200m,memory=128Mi")
    main = {"name": "main", "image": images.AGNHOST, "args": ["inclusterclient", "--poll-interval=1"]}
    spec = {"terminationGracePeriodSeconds": 0, "containers": [main | {"resources": SMALL}]}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "caller"}, "spec": spec}

    async def is_created():
        await tenant.kubectl("apply", "-f", "-", stdin=json.dumps(manifest))
        return True

    await eventually(is_created, within=60)
    await lab.ready(tenant, "pod/caller")
    shown = await lab.below("-n", tenant.below("kube-system"), "get", "pods", "-o", "name")
    assert "pod/coredns-yard-" in shown

    async def says(*arguments):
        try:
            return await lab.below("-n", tenant.below(), *arguments)
        except Refused as error:
            raise AssertionError(str(error)) from None

    async def has_called():
        said = await says("logs", "caller")
        assert "calling /healthz" in said, said
        assert "err" not in said.splitlines()[-1], said
        return True

    async def resolves():
        await says("exec", "caller", "--", "/agnhost", "connect", "kubernetes.default:443", "--timeout=5s")
        return True

    await eventually(has_called, within=60, every=1.0)
    await eventually(resolves, within=real_tenants.WITHIN, every=1.0)
