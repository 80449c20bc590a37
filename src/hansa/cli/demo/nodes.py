"""The demo of virtual nodes: lubeck has no nodes of its own, and its pods run in hamburg and bergen."""

from hansa.cli.demo.stage import Stage

LOWERS = ("hamburg", "bergen")
LEAGUE = """\
upper: {kubeconfig: state/clusters/lubeck/kubeconfig}
lowers:
- {name: hamburg, kubeconfig: state/clusters/hamburg/kubeconfig, taint: none}
- {name: bergen, kubeconfig: state/clusters/bergen/kubeconfig, taint: none}
"""
HELLO = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: hello}
spec:
  replicas: 6
  selector: {matchLabels: {app: hello}}
  template:
    metadata: {labels: {app: hello}}
    spec:
      containers:
      - {name: hello, image: example.com/hello:1, envFrom: [{configMapRef: {name: greeting}}]}
"""
COLUMNS = (
    "NAME:.metadata.name,CPU:.status.allocatable.cpu,MEMORY:.status.allocatable.memory,PODS:.status.allocatable.pods"
)
SERVER = """python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["processes"]["kube-apiserver"])'"""


async def show(stage: Stage) -> None:
    """Run the demo."""
    await _join(stage)
    await _run_pods(stage)
    await _lose(stage)
    stage.explain("Deleting the Deployment deletes its pods in the lower clusters")
    await stage.run("kubectl --context lubeck delete deployment hello")
    for name in LOWERS:
        await stage.run(f"kubectl --context {name} wait --for=delete pods --selector hansa.dev/upper --timeout 60s")


async def _join(stage: Stage) -> None:
    stage.explain(
        "Three real Kubernetes clusters as plain processes: lubeck has no nodes, hamburg and bergen have three each"
    )
    await stage.run("hansa local up lubeck")
    await stage.run("hansa local up hamburg bergen --nodes 3")
    await stage.run("hansa local kubeconfig > kubeconfig")
    await stage.run("hansa local list")
    stage.explain("hamburg and bergen become virtual nodes of lubeck, with their free capacity as allocatable")
    await stage.write("league.yaml", LEAGUE)
    await stage.start("virtual-node", "hansa virtual-node --config league.yaml")
    await stage.until("kubectl --context lubeck get node hamburg bergen")
    await stage.run("kubectl --context lubeck wait node/hamburg node/bergen --for=condition=Ready --timeout 60s")
    await stage.run(f"kubectl --context lubeck get nodes -o custom-columns={COLUMNS}")


async def _run_pods(stage: Stage) -> None:
    stage.explain(
        "A Deployment in lubeck: its pods and their ConfigMap are synced to hamburg and bergen, and status back"
    )
    await stage.run("kubectl --context lubeck create configmap greeting --from-literal text=moin")
    await stage.write("hello.yaml", HELLO)
    await stage.run("kubectl --context lubeck apply -f hello.yaml")
    await stage.run("kubectl --context lubeck rollout status deployment hello --timeout 60s")
    await stage.run("kubectl --context lubeck get pods -o wide")
    for name in LOWERS:
        await stage.run(f"kubectl --context {name} get pods,configmaps --selector hansa.dev/upper -o wide")


async def _lose(stage: Stage) -> None:
    stage.explain("A lower pod is deleted: the upper pod is deleted, too, and lubeck's ReplicaSet replaces it")
    pod = await stage.output("kubectl --context hamburg get pods -o jsonpath='{.items[0].metadata.name}'")
    await stage.run(f"kubectl --context hamburg delete pod {pod}")
    await stage.run(f"kubectl --context lubeck wait pod {pod} --for=delete --timeout 60s")
    ready = "--for=jsonpath='{.status.readyReplicas}'=6"
    await stage.run(f"kubectl --context lubeck wait deployment/hello {ready} --timeout 60s")
    stage.explain("An API server is killed: its virtual node becomes NotReady, its pods stay, and `up` restarts it")
    await stage.run(f"kill -9 $(hansa local list -o json | {SERVER})")
    await stage.run("kubectl --context lubeck wait node/bergen --for=condition=Ready=False --timeout 60s")
    await stage.run("kubectl --context lubeck get nodes")
    await stage.run("hansa local up bergen")
    await stage.run("kubectl --context lubeck wait node/bergen --for=condition=Ready --timeout 60s")
    await stage.run("kubectl --context lubeck get pods")
