"""The guide of multicluster-scheduler, word for word, with agents in pods: from `helm install` to a global Service.

Only what this machine lacks is replaced: the image of the pods, the URL by which pods reach the other API server, and
the Cilium cluster mesh, in whose place the networks of pods are joined. It takes one to three minutes.
"""

import pytest

from cluster_contents import contents, is_as_before
from hansa.local.machines import images
from hansa.local.machines.addresses import Networks

pytestmark = [pytest.mark.timeout(600), pytest.mark.soak]
INSTALL = """
for CONTEXT in $CLUSTER1 $CLUSTER2
do
  kubectl --context "$CONTEXT" create namespace admiralty
  helm install multicluster-scheduler $REPO/deploy/helm/hansa \\
    --kube-context "$CONTEXT" \\
    --namespace admiralty \\
    --set mode=admiralty --set "agent.podNetworks={$NAMESPACE/c2=$PODS2}" \\
    --wait
done
"""
CONNECT = """
cat <<EOF | kubectl --context "$CLUSTER2" apply -f -
apiVersion: multicluster.admiralty.io/v1alpha1
kind: Source
metadata:
  name: c1
  namespace: $NAMESPACE
spec:
  serviceAccountName: c1
EOF
kubectl --context "$CLUSTER2" -n "$NAMESPACE" wait source c1 --for=condition=Ready --timeout=60s
kubemcsa export --context "$CLUSTER2" -n "$NAMESPACE" c1 --as c2 --server "$SERVER2" \\
  | kubectl --context "$CLUSTER1" -n "$NAMESPACE" apply -f -
cat <<EOF | kubectl --context "$CLUSTER1" apply -f -
apiVersion: multicluster.admiralty.io/v1alpha1
kind: Target
metadata:
  name: c2
  namespace: $NAMESPACE
spec:
  kubeconfigSecret:
    name: c2
---
apiVersion: multicluster.admiralty.io/v1alpha1
kind: Target
metadata:
  name: c1
  namespace: $NAMESPACE
spec:
  self: true
EOF
kubectl --context "$CLUSTER1" -n "$NAMESPACE" wait target c1 c2 --for=condition=Ready --timeout=60s
until [ "$(kubectl --context "$CLUSTER1" get node -l virtual-kubelet.io/provider=admiralty -o name | wc -l)" = 2 ]; do
  sleep 0.5
done
kubectl --context "$CLUSTER1" wait node -l virtual-kubelet.io/provider=admiralty --for=condition=Ready --timeout=60s
kubectl --context "$CLUSTER1" get node -l virtual-kubelet.io/provider=admiralty
"""
DEPLOY = """
kubectl --context "$CLUSTER1" label namespace "$NAMESPACE" multicluster-scheduler=enabled
cat <<EOF | kubectl --context "$CLUSTER1" -n "$NAMESPACE" apply -f -
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
      terminationGracePeriodSeconds: 0
      containers:
      - name: nginx
        image: $SERVING
        args: [netexec, --http-port=80]
        resources:
          requests:
            cpu: 100m
            memory: 32Mi
        ports:
        - containerPort: 80
EOF
kubectl --context "$CLUSTER1" -n "$NAMESPACE" rollout status deployment nginx --timeout=200s
kubectl --context "$CLUSTER1" -n "$NAMESPACE" get pods -o wide
kubectl --context "$CLUSTER2" -n "$NAMESPACE" get pods -o wide
"""
PATCH = """
kubectl --context "$CLUSTER1" label nodes -l virtual-kubelet.io/provider!=admiralty topology.kubernetes.io/region=us
kubectl --context "$CLUSTER2" label nodes -l virtual-kubelet.io/provider!=admiralty topology.kubernetes.io/region=eu
kubectl --context "$CLUSTER1" -n "$NAMESPACE" patch deployment nginx -p '{
  "spec":{
    "template":{
      "spec": {
        "nodeSelector": {
          "topology.kubernetes.io/region": "eu"
        }
      }
    }
  }
}'
kubectl --context "$CLUSTER1" -n "$NAMESPACE" rollout status deployment nginx --timeout=200s
kubectl --context "$CLUSTER1" -n "$NAMESPACE" wait pods -l multicluster.admiralty.io/app=nginx \\
  --for=delete --timeout=100s
kubectl --context "$CLUSTER2" -n "$NAMESPACE" get pods -o wide
"""
REROUTE = """
kubectl --context "$CLUSTER1" -n "$NAMESPACE" expose deployment nginx
until kubectl --context "$CLUSTER2" -n "$NAMESPACE" get service nginx -o yaml; do sleep 0.5; done
kubectl --context "$CLUSTER1" -n "$NAMESPACE" run foo -i --rm --restart=Never --image "$CALLING" --command -- \\
  sh -c "until timeout 5 wget -q -O - http://nginx/hostname; do sleep 1; done"
"""
CLEAN = """
kubectl --context "$CLUSTER1" -n "$NAMESPACE" delete service,deployment nginx --ignore-not-found
for CONTEXT in $CLUSTER1 $CLUSTER2
do
  helm uninstall multicluster-scheduler --kube-context "$CONTEXT" --namespace admiralty --wait --cascade=foreground
  kubectl --context "$CONTEXT" delete namespace admiralty
  kubectl --context "$CONTEXT" label nodes --all topology.kubernetes.io/region-
  kubectl --context "$CONTEXT" label namespace "$NAMESPACE" multicluster-scheduler-
  kubectl --context "$CONTEXT" -n "$NAMESPACE" delete secret,serviceaccount c1 c2 --ignore-not-found
done
"""


@pytest.fixture(scope="module")
async def before(lubeck, hamburg):
    return [await contents(one.kubectl) for one in (lubeck, hamburg)]


@pytest.fixture(scope="module")
async def guide(lubeck, hamburg, before, walk):
    """Runs scripts of the guide with its variables."""
    variables = {
        "CLUSTER1": "lubeck",
        "CLUSTER2": "hamburg",
        "NAMESPACE": "default",
        "SERVER2": hamburg.address,
        "PODS2": str(Networks(hamburg.cluster.record.slot).pods),
        "SERVING": images.AGNHOST,
        "CALLING": images.BUSYBOX,
    }

    async def run(script):
        try:
            return await walk(script, **variables)
        except AssertionError:
            for one in (lubeck, hamburg):
                await one.show("admiralty")
            raise

    yield run
    await walk(CLEAN, **variables)
    for one, then in zip((lubeck, hamburg), before, strict=True):
        await is_as_before(one.kubectl, then)


async def delegates(cluster):
    return {name for name, one in (await cluster.pods("default")).items() if is_delegate(one)}


def is_delegate(pod):
    return "multicluster.admiralty.io/app" in pod["metadata"]["labels"]


async def test_the_guide_of_multicluster_scheduler_runs_with_agents_in_pods(guide, lubeck, hamburg):
    await guide(INSTALL)
    nodes = await guide(CONNECT)
    assert "admiralty-namespace-default-c1 " in nodes
    assert "admiralty-namespace-default-c2 " in nodes
    await guide(DEPLOY)
    proxies = [one for one in (await lubeck.pods("default")).values() if not is_delegate(one)]
    assert {one["spec"]["nodeName"] for one in proxies} <= {
        f"admiralty-namespace-default-{name}" for name in ("c1", "c2")
    }
    manifests = [one["metadata"]["annotations"]["multicluster.admiralty.io/sourcepod-manifest"] for one in proxies]
    assert all("nginx" in one for one in manifests)
    assert len(await delegates(lubeck)) + len(await delegates(hamburg)) == 10
    await guide(PATCH)
    assert (len(await delegates(lubeck)), len(await delegates(hamburg))) == (0, 10)
    answered = await guide(REROUTE)
    assert [name for name in await delegates(hamburg) if name in answered], answered
    for one in (lubeck, hamburg):
        service = await one.kubectl.get("service", "nginx")
        assert service["spec"]["selector"] == {"multicluster.admiralty.io/app": "nginx"}
        assert service["metadata"]["annotations"]["io.cilium/global-service"] == "true"
