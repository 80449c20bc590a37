"""The demo of tenants: each has its own control plane, and their pods share the super cluster bergen."""

from hansa.cli.demo.nodes import HELLO
from hansa.cli.demo.stage import TENANTS, Stage

NAMES = ("vc-sample-1", "vc-sample-2")
VIRTUAL_CLUSTER = """\
apiVersion: tenancy.x-k8s.io/v1alpha1
kind: VirtualCluster
metadata: {{name: {name}}}
spec: {{clusterVersionName: cv-sample-np, clusterDomain: cluster.local}}
"""
REASON = """'{.status.conditions[?(@.type=="PodScheduled")].reason}'"""


async def show(stage: Stage) -> None:
    """Run the demo."""
    await _begin(stage)
    await _same_things(stage)
    await _guard(stage)
    stage.explain(
        "Deleting a tenant deletes its control plane and its objects in the super cluster; the other one stays"
    )
    await stage.run("kubectl vc delete vc-sample-1")
    await stage.run("kubectl get namespaces")
    await stage.run("kubectl --kubeconfig vc-sample-2.kubeconfig get pods")


async def _begin(stage: Stage) -> None:
    stage.explain(
        "A real Kubernetes cluster whose nodes are shared by tenants: vc-manager runs their control planes, vc-syncer"
        " syncs their pods"
    )
    await stage.run("hansa local up bergen --nodes 3")
    await stage.run("hansa local kubeconfig > kubeconfig")
    await stage.start("vc-manager", f"hansa vc-manager --state $PWD/{TENANTS}")
    await stage.start("vc-syncer", "hansa vc-syncer")
    await stage.until("kubectl get clusterversion cv-sample-np")
    for name in NAMES:
        await stage.write(f"{name}.yaml", VIRTUAL_CLUSTER.format(name=name))
        await stage.run(f"kubectl vc create -f {name}.yaml -o {name}.kubeconfig")
    await stage.run("kubectl get vc")


async def _same_things(stage: Stage) -> None:
    stage.explain("Both tenants create the same objects; each sees only its own cluster")
    await stage.write("hello.yaml", HELLO)
    for name in NAMES:
        tenant = f"kubectl --kubeconfig {name}.kubeconfig"
        await stage.run(f"{tenant} create configmap greeting --from-literal text=moin")
        await stage.run(f"{tenant} apply -f hello.yaml")
        await stage.run(f"{tenant} rollout status deployment hello --timeout 60s")
    await stage.run("kubectl --kubeconfig vc-sample-1.kubeconfig get pods,nodes -o wide")
    await stage.run("kubectl get namespaces")


async def _guard(stage: Stage) -> None:
    stage.explain("A pod that would break tenant isolation is refused, with an event")
    tenant = "kubectl --kubeconfig vc-sample-1.kubeconfig"
    spec = '{"spec": {"hostNetwork": true}}'
    await stage.run(f"{tenant} run greedy --image example.com/greedy:1 --overrides '{spec}'")
    await stage.run(f"{tenant} wait pod/greedy --for=jsonpath={REASON}=Refused --timeout 60s")
    await stage.run(f"{tenant} get events --field-selector involvedObject.name=greedy")
