"""The demo of a pool, word for word: all programs in pods of the meta cluster, two super clusters with real nodes.

Only what this machine lacks is replaced: the image of the pods, and the claims of etcd. It takes two to four
minutes, with three clusters of its own.
"""

import re

import pytest

import real_machine
import real_tenants
from hansa import local
from hansa.local import ClusterSpec
from hansa.local.machines import images
from hansa.local.machines.addresses import Networks
from hansa.local.machines.host_network import HostNetwork
from league import member
from walks import ROOT, Walk

pytestmark = [pytest.mark.timeout(900), pytest.mark.soak]
INSTALL = """
kubectl config use-context meta
for name in clusterversions virtualclusters; do
  kubectl apply -f $VC_REPO/config/crds/tenancy.x-k8s.io_$name.yaml
done
kubectl apply -f $VC_REPO/config/crds/cluster.x-k8s.io_clusters.yaml
sed s/etcd-storage=claim/etcd-storage=emptyDir/ $VC_REPO/experiment/config/setup/all_in_one.yaml > all_in_one.yaml
kubectl apply -f all_in_one.yaml
kubectl -n vc-manager rollout status deployment vc-manager --timeout=150s
kubectl -n vc-manager rollout status deployment vc-scheduler --timeout=150s
kubectl apply -f $VC_REPO/config/sampleswithspec/clusterversion_v1_nodeport.yaml
kubectl vc create -f $VC_REPO/config/sampleswithspec/virtualcluster_1_nodeport.yaml -o vc-1.kubeconfig --timeout=200s
"""
JOIN = """
$VC_REPO/experiment/config/setup/setup-supercluster-minikube.sh $SUPER_ID
ls cluster_$SUPER_ID
cd cluster_$SUPER_ID
kubectl --context $SUPER_ID apply -f cluster-id.yaml
kubectl --context meta apply -f cluster-cr.yaml
kubectl --context meta apply -f secret-for-scheduler.yaml
kubectl --context meta apply -f vc-syncer.yaml
kubectl --context meta apply -f secret-for-vc-syncer.yaml
kubectl --context meta get deploy -n vc-manager vc-syncer-$SUPER_ID
kubectl --context meta -n vc-manager rollout status deployment vc-syncer-$SUPER_ID --timeout=150s
until kubectl -n vc-manager logs -l app.kubernetes.io/component=vc-scheduler --tail=-1 |
  grep "cluster=$SUPER_ID state=open"; do sleep 1; done
"""
EXPERIMENT = """
tenant() { nsenter --net=/run/netns/$NETNS kubectl --kubeconfig vc-1.kubeconfig "$@"; }
tenant annotate namespace default 'scheduler.tenancy.x-k8s.io/slice={"cpu":"100m", "memory":"100Mi"}'
tenant apply -f - <<END
apiVersion: v1
kind: ResourceQuota
metadata:
  name: mem-cpu-demo
  namespace: default
spec:
  hard:
    cpu: 200m
    memory: 200Mi
END
until tenant get ns default -o yaml |
  grep "scheduler.tenancy.x-k8s.io/placements: '{\\"r1\\":1,\\"r2\\":1}'"; do sleep 0.5; done
tenant apply -f - <<END
apiVersion: apps/v1
kind: Deployment
metadata:
  name: test-1
  labels:
    app: test-1
spec:
  replicas: 1
  selector:
    matchLabels:
      app: test-1
  template:
    metadata:
      labels:
        app: test-1
    spec:
      dnsPolicy: ClusterFirst
      containers:
      - name: test
        command:
        - sh
        - -c
        - "sleep 1000000"
        image: $IMAGE
        resources:
          limits:
            cpu: 100m
            memory: 100Mi
END
tenant rollout status deployment test-1 --timeout 150s
tenant get pod -n default -o yaml | grep 'scheduler.tenancy.x-k8s.io/superCluster: r'
tenant scale deployment test-1 --replicas 2
tenant rollout status deployment test-1 --timeout 150s
kubectl --context r2 get pod -A
echo; echo ---
kubectl  --context r1 get pod -A
"""
LISTING = (
    "cluster-cr.yaml cluster-id.yaml kubeconfig secret-for-scheduler.yaml secret-for-vc-syncer.yaml vc-syncer.yaml"
)
API_PORT = 6443  # of a cluster with real nodes, inside
POD = re.compile(r"^default-[0-9a-f]{6}-vc-sample-1-default +(test-1-\S+) +1/1 +Running ", re.MULTILINE)


@pytest.fixture
async def pool(fleet, image, kubectl, tmp_path_factory):
    """Three clusters with a real node each, whose pods reach one another's API servers."""
    folder = tmp_path_factory.mktemp("pool")
    real_machine.tools(folder)
    planes = await real_tenants.archive(fleet, folder / "control-plane.tar")
    helm = (await local.binaries.ensure(["helm"], sources=fleet.sources))["helm"]
    specs = [
        ClusterSpec("meta", real_nodes=1, join_pods=True, images=(image, str(planes))),
        ClusterSpec("r1", real_nodes=1, join_pods=True),
        ClusterSpec("r2", real_nodes=1, join_pods=True),
    ]
    try:
        clusters = await fleet.up(specs)
        walk = Walk(folder, (helm, kubectl))
        walk.contexts(clusters)
        yield walk, {one.name: one for one in clusters}
    finally:
        await fleet.down([one.name for one in specs])


async def test_the_demo_of_a_pool_runs_with_all_programs_in_pods(pool, fleet, kubectl):
    walk, clusters = pool
    variables = {
        "VC_REPO": str(ROOT / "hack" / "virtualcluster"),
        "NETNS": HostNetwork(fleet.state.root).host("meta", 1),
        "IMAGE": images.BUSYBOX,
    }
    try:
        await walk(INSTALL, within=400, **variables)
        for name in ("r1", "r2"):
            server = f"https://{Networks(clusters[name].record.slot).control_plane}:{API_PORT}"
            shown = await walk(JOIN, SUPER_ID=name, SUPER_SERVER=server, **variables)
            assert LISTING.replace(" ", "\n") in shown
        shown = await walk(EXPERIMENT, **variables)
        second, first = shown.split("\n---\n")
        assert len(POD.findall(second)) == len(POD.findall(first)) == 1, shown
        assert POD.findall(second) != POD.findall(first)
    except AssertionError:
        await show(member(clusters["meta"], kubectl).kubectl)
        raise
    await walk("kubectl vc delete vc-sample-1 --timeout=150s")


async def show(kubectl):
    """Print what the programs and the control plane say."""
    for line in ("get pods -A -o wide", "get events -A --sort-by=.lastTimestamp", "describe nodes"):
        print((await kubectl.run(*line.split()))[1].decode()[-5000:])  # noqa: T201
    for one in (await kubectl.get("-n", "vc-manager", "pods"))["items"]:
        said = await kubectl.run("-n", "vc-manager", "logs", one["metadata"]["name"], "--tail=30")
        print(one["metadata"]["name"], said[1].decode())  # noqa: T201
