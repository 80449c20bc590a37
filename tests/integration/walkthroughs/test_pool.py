"""The walkthrough of VirtualCluster's pool, word for word, with the files in hack/virtualcluster.

Control planes of this machine have no nodes for pods of Hansa, so that vc-manager, vc-scheduler and vc-syncer run as
processes. Only the addresses of files differ: those of upstream are paths below $VC_REPO here.
"""

import asyncio
import contextlib
import os
import re
import signal
import sys
from pathlib import Path

import pytest
import yaml

from hansa.local import ClusterSpec
from hansa.local.control_plane import kubeconfig
from hansa.programs import process

pytestmark = pytest.mark.timeout(600)
ROOT = Path(__file__).parents[3]
WALK = """
set -euo pipefail
kubectl config use-context meta
for name in clusterversions virtualclusters; do
  kubectl apply -f $VC_REPO/config/crds/tenancy.x-k8s.io_$name.yaml
done
kubectl apply -f $VC_REPO/config/crds/cluster.x-k8s.io_clusters.yaml
kubectl apply -f $VC_REPO/experiment/config/setup/all_in_one.yaml
kubectl apply -f $VC_REPO/config/sampleswithspec/clusterversion_v1_nodeport.yaml

hansa vc-manager --context meta --state $PWD/tenants --etcd-fast > vc-manager.log 2>&1 &
hansa vc-scheduler --kubeconfig meta.kubeconfig > vc-scheduler.log 2>&1 &
kubectl vc create -f $VC_REPO/config/sampleswithspec/virtualcluster_1_nodeport.yaml -o vc-1.kubeconfig

for SUPER_ID in r1 r2; do
  $VC_REPO/experiment/config/setup/setup-supercluster-minikube.sh $SUPER_ID
  ls cluster_$SUPER_ID
  cd cluster_$SUPER_ID
  kubectl --kubeconfig kubeconfig apply -f cluster-id.yaml
  kubectl --context meta apply -f cluster-cr.yaml
  kubectl --context meta apply -f secret-for-scheduler.yaml
  kubectl --context meta apply -f vc-syncer.yaml
  kubectl --context meta apply -f secret-for-vc-syncer.yaml
  kubectl --context meta get deploy -n vc-manager vc-syncer-$SUPER_ID
  cd ..
  hansa vc-syncer --meta-cluster-kubeconfig meta.kubeconfig --super-master-kubeconfig cluster_$SUPER_ID/kubeconfig \\
    --deployment-on-meta=true --syncer-name vc-syncer-$SUPER_ID --feature-gates SuperClusterPooling=true \\
    > vc-syncer-$SUPER_ID.log 2>&1 &
  until grep -q "cluster=$SUPER_ID state=open" vc-scheduler.log; do sleep 0.2; done
done

kubectl --kubeconfig vc-1.kubeconfig annotate namespace default \\
  'scheduler.tenancy.x-k8s.io/slice={"cpu":"100m", "memory":"100Mi"}'
kubectl --kubeconfig vc-1.kubeconfig apply -f - <<END
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
until kubectl --kubeconfig vc-1.kubeconfig get ns default -o yaml |
  grep "scheduler.tenancy.x-k8s.io/placements: '{\\"r1\\":1,\\"r2\\":1}'"; do sleep 0.2; done
kubectl --kubeconfig vc-1.kubeconfig apply -f - <<END
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
        image: docker.io/library/busybox:1.29
        imagePullPolicy: Always
        resources:
          limits:
            cpu: 100m
            memory: 100Mi
END
kubectl --kubeconfig vc-1.kubeconfig rollout status deployment test-1 --timeout 120s
kubectl --kubeconfig vc-1.kubeconfig get pod -n default -o yaml | grep 'scheduler.tenancy.x-k8s.io/superCluster: r'
kubectl --kubeconfig vc-1.kubeconfig scale deployment test-1 --replicas 2
kubectl --kubeconfig vc-1.kubeconfig rollout status deployment test-1 --timeout 120s
kubectl --context r2 get pod -A
kubectl  --context r1 get pod -A
kubectl vc delete vc-sample-1
"""
LISTING = (
    "cluster-cr.yaml cluster-id.yaml kubeconfig secret-for-scheduler.yaml secret-for-vc-syncer.yaml vc-syncer.yaml"
)
POD = re.compile(r"^default-[0-9a-f]{6}-vc-sample-1-default +(test-1-\S+) +1/1 +Running ", re.MULTILINE)


@pytest.fixture
async def home(fleet, kubectl, tmp_path):
    """A folder with kubeconfigs of three clusters, and the environment of a shell in it."""
    names = ("meta", "r1", "r2")
    members = await fleet.up([ClusterSpec(name, nodes=int(name != "meta"), lift_limits=True) for name in names])
    texts = [one.kubeconfig.read_text() for one in members]
    (tmp_path / "config").write_text(kubeconfig.dump(kubeconfig.merge([yaml.safe_load(text) for text in texts])))
    (tmp_path / "meta.kubeconfig").write_text(texts[0])
    path = f"{Path(sys.executable).parent}:{kubectl.parent}:{os.environ['PATH']}"
    repository = ROOT / "hack" / "virtualcluster"
    yield tmp_path, {**os.environ, "PATH": path, "KUBECONFIG": str(tmp_path / "config"), "VC_REPO": str(repository)}
    for one in process.running(tmp_path / "tenants").values():
        await one.stop()
    await fleet.down(names)


async def test_the_walkthrough_of_a_pool_runs_word_for_word(home):
    folder, environment = home
    shell = await asyncio.create_subprocess_exec(
        *("bash", "-c", WALK),
        cwd=folder,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(400):
            assert shell.stdout is not None
            output = ""
            while line := (await shell.stdout.readline()).decode():
                output += line
                if line.startswith("VirtualCluster default/vc-sample-1 deleted"):
                    break
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGTERM)
        await shell.wait()
    logs = "".join(f"\n--- {path.name}\n{path.read_text()[-3000:]}" for path in folder.glob("*.log"))
    assert "vc-sample-1 deleted" in output, output + logs
    assert output.count(LISTING.replace(" ", "\n")) == 2
    assert len(set(POD.findall(output))) == 2, output
