"""A namespaced Target needs no right outside of its namespace but to read the ClusterSummary."""

from accounts import is_refused
from eventually import eventually
from federation import a_deployment
from league import PATIENCE

FLAGS = ("--follow-claims", "--follow-service-accounts", "--pod-networks", "10.0.0.0/8")


async def test_a_namespaced_target_needs_rights_in_its_namespace_only(federation, namespace, nodes, pods):
    await federation.agents.pop("east").stop()
    await federation.start("east", flags=FLAGS)
    try:
        await everything_happens(federation, namespace, pods)
    finally:
        await federation.agents.pop("east").stop()
    requests = pods.west.audit(f"system:serviceaccount:{namespace}:east")
    assert {f"{one['verb']} {one['requestURI']}" for one in requests if is_refused(one)} == set()
    outside = {path(one) for one in requests if f"/namespaces/{namespace}" not in one["requestURI"]}
    assert outside == {"/apis/multicluster.admiralty.io/v1alpha1/clustersummaries", "/readyz"}
    written = {one["objectRef"]["resource"] for one in requests if one["verb"] in {"create", "patch", "delete"}}
    assert written >= {kind for kind, _ in KINDS} | {"pods"}


KINDS = (
    *(("configmaps", "c"), ("secrets", "s"), ("serviceaccounts", "robot"), ("persistentvolumeclaims", "data")),
    *(("services", "web"), ("ingresses", "web")),
)


async def everything_happens(federation, namespace, pods):
    """Objects of all kinds are copied, changed and deleted."""
    kube = pods.east.kubectl
    await kube("-n", namespace, "create", "serviceaccount", "robot")
    await kube("-n", namespace, "create", "configmap", "c", "--from-literal=k=1")
    await kube("-n", namespace, "create", "secret", "generic", "s", "--from-literal=k=1")
    await kube("-n", namespace, "create", "service", "clusterip", "web", "--tcp=80")
    await kube("-n", namespace, "create", "ingress", "web", "--rule=web.example.com/=web:80")
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec}
    volumes = [
        {"name": "c", "configMap": {"name": "c"}},
        {"name": "s", "secret": {"secretName": "s"}},
        {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
    ]
    here = {"nodeSelector": {"kubernetes.io/hostname": "west-0"}}
    await pods.apply(claim, a_deployment("web", 2, volumes=volumes, serviceAccountName="robot", **here))
    await eventually(lambda: are_in(pods.west, namespace, *KINDS), within=PATIENCE)
    for kind, name in KINDS:
        await kube("-n", namespace, "label", kind, name, "changed=yes")
    await eventually(lambda: are_in(pods.west, namespace, *KINDS, changed="yes"), within=PATIENCE)
    await kube("-n", namespace, "delete", "deployment/web", "service/web", "pvc/data")
    await eventually(lambda: are_gone(pods.west, namespace), within=PATIENCE)


async def are_in(member, namespace, *kinds, **labels):
    for kind, name in kinds:
        found = await member.find(kind, name, namespace=namespace)
        assert found is not None, f"no {kind} {name}"
        assert labels.items() <= found["metadata"]["labels"].items(), found["metadata"]
    return True


async def are_gone(member, namespace):
    for kind, name in KINDS:
        assert await member.find(kind, name, namespace=namespace) is None, f"{kind} {name} is left"
    return True


def path(request):
    return request["requestURI"].partition("?")[0]
