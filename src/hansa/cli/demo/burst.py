"""The demo of cloud bursting: pods of cluster1 run in cluster1 and cluster2, which are its targets."""

from hansa.cli.demo.stage import Stage

CLUSTERS = ("cluster1", "cluster2")
NODE = "admiralty-namespace-default"
SOURCE = """\
apiVersion: multicluster.admiralty.io/v1alpha1
kind: Source
metadata:
  name: c1
  namespace: default
spec:
  serviceAccountName: c1
"""
TARGETS = """\
apiVersion: multicluster.admiralty.io/v1alpha1
kind: Target
metadata:
  name: c2
  namespace: default
spec:
  kubeconfigSecret:
    name: c2
---
apiVersion: multicluster.admiralty.io/v1alpha1
kind: Target
metadata:
  name: c1
  namespace: default
spec:
  self: true
"""
NGINX = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: nginx
spec:
  replicas: 10
  selector:
    matchLabels:
      app: nginx
  template:
    metadata:
      labels:
        app: nginx
      annotations:
        multicluster.admiralty.io/elect: ""
    spec:
      containers:
      - name: nginx
        image: nginx
        resources:
          requests:
            cpu: 100m
            memory: 32Mi
        ports:
        - containerPort: 80
"""
PATCH = '{"spec":{"template":{"spec": {"nodeSelector": {"topology.kubernetes.io/region": "eu"}}}}}'
DELEGATES = "get pods -l multicluster.admiralty.io/app=nginx -o wide"


async def show(stage: Stage) -> None:
    """Run the demo."""
    await _install(stage)
    await _connect(stage)
    await _deploy(stage)
    await _move(stage)
    await _expose(stage)
    stage.explain("Deleting the Deployment and the Service deletes the delegates and the copy of the Service")
    await stage.run("kubectl --context cluster1 delete deployment,service nginx")
    await stage.run("kubectl --context cluster2 wait pods -l multicluster.admiralty.io/app --for=delete --timeout 60s")
    await stage.run("kubectl --context cluster2 wait service/nginx --for=delete --timeout 60s")


async def _install(stage: Stage) -> None:
    stage.explain("Two real Kubernetes clusters with three simulated nodes each, and an agent for each of them")
    await stage.run("hansa local up cluster1 cluster2 --nodes 3")
    await stage.run("hansa local kubeconfig > kubeconfig")
    for name in CLUSTERS:
        await stage.start(f"agent-{name}", f"hansa agent --context {name}")
    for name in CLUSTERS:
        await stage.until(f"kubectl --context {name} get clustersummaries singleton")


async def _connect(stage: Stage) -> None:
    stage.explain("cluster2 allows cluster1 to run pods in its namespace default: a Source")
    await stage.write("source.yaml", SOURCE)
    await stage.run("kubectl --context cluster2 apply -f source.yaml")
    stage.explain("cluster1 gets a kubeconfig for cluster2, and two Targets: cluster2, and cluster1 itself")
    await stage.run("kubemcsa export --context cluster2 -n default c1 --as c2 | kubectl --context cluster1 apply -f -")
    await stage.write("targets.yaml", TARGETS)
    await stage.run("kubectl --context cluster1 apply -f targets.yaml")
    nodes = " ".join(f"{NODE}-{name}" for name in ("c1", "c2"))
    await stage.until(f"kubectl --context cluster1 get node {nodes}")
    await stage.run(f"kubectl --context cluster1 wait node {nodes} --for=condition=Ready --timeout 60s")
    await stage.run("kubectl --context cluster1 get targets")
    await stage.run("kubectl --context cluster1 get node -l virtual-kubelet.io/provider=admiralty")


async def _deploy(stage: Stage) -> None:
    stage.explain("The webhook makes ten proxy pods of ten elected pods; each has a delegate in one of the clusters")
    await stage.run("kubectl --context cluster1 label namespace default multicluster-scheduler=enabled")
    await stage.write("nginx.yaml", NGINX)
    await stage.run("kubectl --context cluster1 apply -f nginx.yaml")
    await stage.run("kubectl --context cluster1 rollout status deployment nginx --timeout 120s")
    await stage.run("kubectl --context cluster1 get pods -l app=nginx -o wide")
    for name in CLUSTERS:
        await stage.run(f"kubectl --context {name} {DELEGATES}")


async def _move(stage: Stage) -> None:
    stage.explain("The nodes of cluster1 are in region us, those of cluster2 in eu, and so are their virtual nodes")
    for name, region in zip(CLUSTERS, ("us", "eu"), strict=True):
        label = f"nodes -l virtual-kubelet.io/provider!=admiralty topology.kubernetes.io/region={region}"
        await stage.run(f"kubectl --context {name} label {label}")
    stage.explain("With a node selector for eu, all delegates move to cluster2")
    await stage.run(f"kubectl --context cluster1 patch deployment nginx -p '{PATCH}'")
    await stage.run("kubectl --context cluster1 rollout status deployment nginx --timeout 120s")
    await stage.run("kubectl --context cluster1 wait pods -l multicluster.admiralty.io/app --for=delete --timeout 60s")
    for name in CLUSTERS:
        await stage.run(f"kubectl --context {name} {DELEGATES}")


async def _expose(stage: Stage) -> None:
    stage.explain("A Service that selects the proxy pods is rerouted to their delegates, and copied to cluster2")
    await stage.run("kubectl --context cluster1 expose deployment nginx")
    await stage.until("kubectl --context cluster2 get service nginx")
    for name in CLUSTERS:
        await stage.run(f"kubectl --context {name} get service nginx -o yaml")
