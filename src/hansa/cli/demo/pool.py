"""The demo of a super cluster pool: a meta cluster, super clusters r1 and r2, and a tenant with pods in both."""

from hansa.cli.demo.leftovers import TENANTS
from hansa.cli.demo.stage import Stage

SUPERS = ("r1", "r2")
PLACEMENTS = '{"r1":1,"r2":1}'
TENANT = "kubectl --kubeconfig vc-1.kubeconfig"
QUESTION = "--kubeconfig vc-1.kubeconfig --meta-cluster-kubeconfig meta.kubeconfig"
VIRTUAL_CLUSTER = """\
apiVersion: tenancy.x-k8s.io/v1alpha1
kind: VirtualCluster
metadata:
  name: vc-sample-1
spec:
  clusterVersionName: cv-sample-np
"""
QUOTA = """\
apiVersion: v1
kind: ResourceQuota
metadata:
  name: mem-cpu-demo
  namespace: default
spec:
  hard:
    cpu: 200m
    memory: 200Mi
"""
DEPLOYMENT = """\
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
"""


async def show(stage: Stage) -> None:
    """Run the demo."""
    await _meta(stage)
    await _tenant(stage)
    for name in SUPERS:
        await _super(stage, name)
    for name in SUPERS:  # otherwise all slices would be placed in r1
        await stage.until(f"grep 'cluster={name} state=open' vc-scheduler.log")
    await _quota(stage)
    await _pods(stage)


async def _meta(stage: Stage) -> None:
    stage.explain("Three real Kubernetes clusters: meta without nodes, r1 and r2 with one simulated node each")
    await stage.run("hansa local up meta")
    await stage.run("hansa local up r1 r2 --nodes 1")
    await stage.run("hansa local kubeconfig > kubeconfig")
    await stage.run("hansa local kubeconfig meta > meta.kubeconfig")
    stage.explain("Step 1: vc-manager and vc-scheduler run for the meta cluster, and install their CRDs")
    await stage.start(
        "vc-manager", f"hansa vc-manager --kubeconfig meta.kubeconfig --state $PWD/{TENANTS} --provisioner process"
    )
    await stage.start("vc-scheduler", "hansa vc-scheduler --kubeconfig meta.kubeconfig")
    await stage.until("kubectl --context meta get clusterversions cv-sample-np")
    await stage.until("kubectl --context meta get crds", shows="clusters.cluster.x-k8s.io")


async def _tenant(stage: Stage) -> None:
    stage.explain("Step 2: a tenant with its own Kubernetes control plane")
    await stage.write("virtualcluster_1_nodeport.yaml", VIRTUAL_CLUSTER)
    await stage.run("kubectl vc create -f virtualcluster_1_nodeport.yaml -o vc-1.kubeconfig")
    await stage.run(f"{TENANT} get namespaces")


async def _super(stage: Stage, name: str) -> None:
    folder = f"cluster_{name}"
    stage.explain(
        f"Step 3: {name} joins as a super cluster. Its vc-syncer runs as a process here; vc-syncer.yaml would run it in"
        " the meta cluster"
    )
    await stage.run(f"hansa join {name}")
    await stage.run(f"ls {folder}")
    await stage.run(f"kubectl --kubeconfig {folder}/kubeconfig apply -f {folder}/cluster-id.yaml")
    await stage.run(f"kubectl --context meta apply -f {folder}/cluster-cr.yaml")
    await stage.run(f"kubectl --context meta apply -f {folder}/secret-for-scheduler.yaml")
    await stage.start(
        f"vc-syncer-{name}",
        f"hansa vc-syncer --meta-cluster-kubeconfig meta.kubeconfig --super-master-kubeconfig {folder}/kubeconfig"
        f" --deployment-on-meta=true --syncer-name vc-syncer-{name} --feature-gates SuperClusterPooling=true"
        " --tenant-dns=false",  # its pods would be listed beside those that the walkthrough is about
    )


async def _quota(stage: Stage) -> None:
    stage.explain("The tenant sets the slice size of namespace default, and a quota of two slices")
    await stage.run(
        f"{TENANT} annotate namespace default"
        """ 'scheduler.tenancy.x-k8s.io/slice={"cpu":"100m", "memory":"100Mi"}'"""
    )
    await stage.write("quota.yaml", QUOTA)
    await stage.run(f"{TENANT} apply -f quota.yaml")
    stage.explain("vc-scheduler places one slice in each super cluster")
    await stage.until(
        f"{TENANT} get ns default -o yaml", shows=f"scheduler.tenancy.x-k8s.io/placements: '{PLACEMENTS}'"
    )


async def _pods(stage: Stage) -> None:
    stage.explain(
        "A Deployment whose pod has the size of a slice: vc-scheduler assigns it to a super cluster, where it runs"
    )
    await stage.write("deployment.yaml", DEPLOYMENT)
    await stage.run(f"{TENANT} apply -f deployment.yaml")
    await stage.run(f"{TENANT} rollout status deployment test-1 --timeout 120s")
    await stage.run(f"{TENANT} get pod -n default -l app=test-1 -o yaml | sed '/^  spec:/,$d'")
    for name in SUPERS:
        await stage.run(f"kubectl --context {name} get pod -A")
    stage.explain("With two replicas, the second pod is assigned to the other super cluster")
    await stage.run(f"{TENANT} scale deployment test-1 --replicas 2")
    await stage.run(f"{TENANT} rollout status deployment test-1 --timeout 120s")
    for name in reversed(SUPERS):
        await stage.run(f"kubectl --context {name} get pod -A")
    stage.explain(
        "The tenant sees both pods, and a virtual node for each, whose name has the super cluster's id as prefix"
    )
    await stage.run(f"{TENANT} get pods -o wide")
    await stage.run(f"{TENANT} get nodes")
    stage.explain("Why the namespace is where it is, and what would happen if r1 was lost. Nothing is changed")
    await stage.run(f"hansa explain namespace default {QUESTION}")
    await stage.run("hansa whatif --lose r1 --kubeconfig meta.kubeconfig")
