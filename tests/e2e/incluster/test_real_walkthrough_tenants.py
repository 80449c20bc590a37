"""The two tenants of one super cluster that the overview of VirtualCluster shows, with all programs from the chart.

Only what this machine lacks is replaced: the image of the pods, and the claims of etcd. It takes one to three minutes.
"""

import re

import pytest

from cluster_contents import contents, is_as_before
from hansa.local.machines import images

pytestmark = [pytest.mark.timeout(900), pytest.mark.soak]
INSTALL = """
kubectl create namespace vc-manager
helm install hansa $REPO/deploy/helm/hansa --namespace vc-manager --wait \\
  --set tenants.etcd.storage=emptyDir --set crds.keep=false
for number in 1 2; do
  kubectl vc create -f $REPO/hack/virtualcluster/config/sampleswithspec/virtualcluster_${number}_nodeport.yaml \\
    -o vc-$number.kubeconfig --timeout=200s
done
kubectl get vc -A
"""
TENANT = """
tenant() { nsenter --net=/run/netns/$NETNS kubectl --kubeconfig vc-$NUMBER.kubeconfig "$@"; }
until tenant cluster-info | grep "CoreDNS is running at"; do sleep 0.5; done
tenant cluster-info
tenant create namespace $NAMESPACE
until tenant -n $NAMESPACE get serviceaccount default; do sleep 0.5; done
tenant -n $NAMESPACE run operator --image $IMAGE -- sh -c "sleep 1000000"
tenant -n $NAMESPACE wait pod operator --for=condition=Ready --timeout=150s
tenant -n $NAMESPACE get po
tenant get po -A
"""
SUPER = """
kubectl cluster-info
kubectl get ns | grep default
"""
CLEAN = """
kubectl delete vc vc-sample-1 vc-sample-2 --timeout=150s --ignore-not-found
until ! kubectl get namespaces | grep vc-sample; do sleep 1; done
helm uninstall hansa --namespace vc-manager --wait --cascade=foreground
kubectl delete namespace vc-manager --timeout=100s
"""
NAMESPACES = {"1": "openshift-marketplace", "2": "ibm-common-services"}
OWN = ("", "-default", "-kube-node-lease", "-kube-public", "-kube-system")


@pytest.fixture
async def overview(lubeck, walk):
    """Runs scripts in the cluster, which is as it was when all is deleted."""
    before = await contents(lubeck.kubectl)

    async def run(script, **variables):
        try:
            return await walk(script, within=450, NETNS=lubeck.netns, IMAGE=images.BUSYBOX, **variables)
        except AssertionError:
            await lubeck.show("vc-manager")
            raise

    await run("kubectl config use-context lubeck")
    yield run
    await run(CLEAN)
    await is_as_before(lubeck.kubectl, before)


async def test_two_tenants_share_a_super_cluster(overview):
    listed = await overview(INSTALL)
    assert re.findall(r"^default +(vc-sample-\d) ", listed, re.MULTILINE) == ["vc-sample-1", "vc-sample-2"]
    addresses = set()
    for number, namespace in NAMESPACES.items():
        shown = await overview(TENANT, NUMBER=number, NAMESPACE=namespace)
        assert re.search(r"^operator +1/1 +Running ", shown, re.MULTILINE)
        assert NAMESPACES[str(3 - int(number))] not in shown.rpartition("get po -A")[2]
        addresses |= set(
            re.findall(r"CoreDNS\S* is running at \S*(https://[^/]+)/api/v1/namespaces/kube-system/", shown)
        )
    assert len(addresses) == 2
    shown = await overview(SUPER)
    found = set(re.findall(r"^default-[0-9a-f]{6}-(vc-sample-\S+) +Active ", shown, re.MULTILINE))
    wanted = {f"vc-sample-{number}{name}" for number in NAMESPACES for name in OWN}
    assert found == wanted | {f"vc-sample-{number}-{name}" for number, name in NAMESPACES.items()}
