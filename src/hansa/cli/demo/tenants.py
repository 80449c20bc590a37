"""The demo of tenants: each has its own control plane, and their pods share the super cluster bergen."""

from hansa.cli.demo.leftovers import STATE, TENANTS
from hansa.cli.demo.stage import Stage
from hansa.local.machines import images, requirements
from hansa.programs import ports

NAMES = ("vc-sample-1", "vc-sample-2")
VIRTUAL_CLUSTER = """\
apiVersion: tenancy.x-k8s.io/v1alpha1
kind: VirtualCluster
metadata: {{name: {name}}}
spec: {{clusterVersionName: cv-sample-np, clusterDomain: cluster.local}}
"""
HELLO = f"""\
apiVersion: apps/v1
kind: Deployment
metadata: {{name: hello}}
spec:
  replicas: 6
  selector: {{matchLabels: {{app: hello}}}}
  template:
    metadata: {{labels: {{app: hello}}}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: hello
        image: {images.BUSYBOX}
        args: [sh, -c, echo $text from $HOSTNAME; sleep 1000000]
        envFrom: [{{configMapRef: {{name: greeting}}}}]
"""
CA = "{.clusters[0].cluster.certificate-authority-data}"
REASON = """'{.status.conditions[?(@.type=="PodScheduled")].reason}'"""


async def show(stage: Stage) -> None:
    """Run the demo."""
    lacking = requirements.lacking(stage.folder / STATE)
    await _begin(stage, "--nodes 3" if lacking else "--real-nodes 1")
    await _same_things(stage)
    await _guard(stage)
    if lacking:
        stage.explain(f"kubectl logs and exec need containers, which simulated nodes don't run: {lacking[0]}")
    else:
        await _logs(stage)
    stage.explain(
        "Deleting a tenant deletes its control plane and its objects in the super cluster; the other one stays"
    )
    await stage.run("kubectl vc delete vc-sample-1")
    await stage.run("kubectl get namespaces")
    await stage.run("kubectl --kubeconfig vc-sample-2.kubeconfig get pods")


async def _begin(stage: Stage, nodes: str) -> None:
    stage.explain(
        "A real Kubernetes cluster whose nodes are shared by tenants: vc-manager runs their control planes, vc-syncer"
        " syncs their pods, vn-agent serves kubectl logs and exec"
    )
    [port] = ports.choose(1, taken=(), seed=str(stage.folder))
    await stage.run(f"hansa local up bergen {nodes}")
    await stage.run("hansa local kubeconfig > kubeconfig")
    await stage.run(f"kubectl config view --raw -o jsonpath='{CA}' | base64 -d > ca.crt")
    await stage.start("vc-manager", f"hansa vc-manager --state $PWD/{TENANTS} --vn-agent-ca ca.crt")
    await stage.start("vc-syncer", f"hansa vc-syncer --vn-agent-address 127.0.0.1:{port}")
    await stage.until("kubectl get clusterversion cv-sample-np")
    await stage.start("vn-agent", f"hansa vn-agent --address 127.0.0.1 --port {port}")
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


async def _logs(stage: Stage) -> None:
    stage.explain(
        "Logs and exec: vn-agent knows the tenant by its API server's certificate, and its pods by their stamp"
    )
    tenant = "kubectl --kubeconfig vc-sample-1.kubeconfig"
    await stage.until(f"{tenant} logs deployment/hello", shows="moin from hello-")
    await stage.run(f"{tenant} exec deployment/hello -- sh -c 'echo $text again'")
