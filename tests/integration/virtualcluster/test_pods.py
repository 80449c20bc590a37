"""Pods of tenants in the super cluster: they run as in a cluster of their own, within their restrictions."""

import asyncio
import base64
import json

import pytest

from eventually import eventually
from hansa.kube import errors, resources
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from league import fresh_name
from tenant_league import Tenants, pod

TOKEN_VOLUME = "kube-api-access"
UPPER_UID = "hansa.dev/upper-uid"
POLICIES, POLICY_BINDINGS = (
    Resource("admissionregistration.k8s.io", "v1", plural, kind=kind, namespaced=False)
    for plural, kind in (
        ("validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
        ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
    )
)


async def test_a_pod_runs_in_the_super_cluster_and_its_node_status_and_events_are_synced_up(tenants, blue, namespace):
    await blue.make(resources.PODS, "p", namespace, **pod())
    above = await blue.phase("p", namespace)
    below = await tenants.super.there(resources.PODS, "p", blue.below(namespace))
    assert above["spec"]["nodeName"] == below["spec"]["nodeName"]

    def is_alike(pod):
        return all(
            pod["status"][field] == below["status"][field] for field in ("podIP", "startTime", "containerStatuses")
        )

    await blue.there(resources.PODS, "p", namespace, when=is_alike)
    reported = await blue.event("Scheduled", "p", namespace)
    assert reported["involvedObject"]["uid"] == above["metadata"]["uid"]
    assert blue.key not in reported["message"]


async def test_a_node_is_created_with_the_first_pod_and_follows_the_super_node(tenants, blue, namespace):
    await blue.make(resources.PODS, "p", namespace, **pod())
    name = (await blue.phase("p", namespace))["spec"]["nodeName"]
    node, real = await blue.there(resources.NODES, name), await tenants.super.there(resources.NODES, name)
    assert node["metadata"]["labels"]["tenancy.x-k8s.io/virtualnode"] == "true"
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == name
    assert node["spec"]["unschedulable"] is True
    assert "node.kubernetes.io/unschedulable" in {taint["key"] for taint in node["spec"]["taints"]}
    assert node["status"]["capacity"] == real["status"]["capacity"]
    ready = {one["type"]: one["status"] for one in node["status"]["conditions"]}
    assert ready["Ready"] == "True"
    lease = await blue.there(resources.LEASES, name, "kube-node-lease")
    assert lease["spec"]["leaseDurationSeconds"] == 200


async def test_a_node_and_its_lease_are_deleted_after_the_tenants_last_pod_there(tenants, clusters, tmp_path):
    lone = Tenants(tenants.super, tmp_path)
    tenant = await lone.add(fresh_name("vc"), clusters["spare"])
    await tenant.make(resources.PODS, "p", "default", **pod())
    node = (await tenant.phase("p"))["spec"]["nodeName"]
    await tenant.there(resources.LEASES, node, "kube-node-lease")
    await tenant.client.delete(resources.PODS, "p", namespace="default", grace=0)
    await tenant.gone(resources.NODES, node)
    await tenant.gone(resources.LEASES, node, "kube-node-lease")
    await tenants.super.kubectl("delete", "vc", next(iter(lone.tenants)))
    await tenants.super.gone(resources.NAMESPACES, tenant.below())


async def test_a_lower_pod_is_deleted_with_the_grace_period_of_the_upper_one(tenants, blue, namespace):
    await blue.make(resources.PODS, "p", namespace, **pod(terminationGracePeriodSeconds=77))
    await blue.phase("p", namespace)
    # kwok ends a deleted pod at once, with no grace period; the watch has the version before that.
    async with tenants.super.watched(resources.PODS, blue.below(namespace)) as versions:
        await blue.client.delete(resources.PODS, "p", namespace=namespace, grace=41)
        await tenants.super.gone(resources.PODS, "p", blue.below(namespace))
        [first, *_] = await eventually(lambda: leaving(versions))
    assert first.metadata.deletion_grace_period_seconds == 41
    await blue.gone(resources.PODS, "p", namespace)


async def leaving(versions):
    return [one for one in versions if one.is_deleting]


async def test_a_lost_lower_pod_fails_the_upper_one_so_that_its_controller_creates_another(tenants, blue, namespace):
    template = {"metadata": {"labels": {"app": "w"}}, "spec": pod()["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "w"}}, "template": template}
    await blue.make(resources.DEPLOYMENTS, "w", namespace, spec=spec)

    async def running(but=""):
        found = (await blue.client.list(resources.PODS, namespace=namespace, labels="app=w")).items
        return [one for one in found if one.uid != but and one.status.get("phase") == "Running"]

    [first] = await eventually(running, within=60)
    await tenants.super.client.delete(resources.PODS, first.name, namespace=blue.below(namespace))
    await blue.gone(resources.PODS, first.name, namespace)
    [second] = await eventually(lambda: running(but=first.uid), within=60)
    found = (await tenants.super.client.list(resources.PODS, namespace=blue.below(namespace))).items
    assert [(one.name, one.annotations[UPPER_UID]) for one in found] == [(second.name, second.uid)]


async def test_pods_see_their_own_names_their_services_and_their_api_server(tenants, blue, namespace):
    await blue.make(resources.SERVICES, "db", namespace, spec={"ports": [{"port": 5432}]})
    db = await blue.there(resources.SERVICES, "db", namespace)
    env = [
        {"name": "WHERE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
        {"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
    ]
    made = pod(hostname="h", subdomain="s")
    made["spec"]["containers"][0]["env"] = env
    above = await blue.make(resources.PODS, "p", namespace, **made)
    below = await tenants.super.there(resources.PODS, "p", blue.below(namespace))
    spec = below["spec"]
    own = {one["name"]: value_of(one, below) for one in spec["containers"][0]["env"]}
    assert (own["WHERE"], own["WHO"]) == (namespace, above["metadata"]["uid"])
    reported = await variables(tenants, blue, namespace, when=lambda reported: "DB_SERVICE_HOST" in reported)
    assert reported["DB_SERVICE_HOST"] == db["spec"]["clusterIP"]
    assert reported["DB_SERVICE_PORT"] == "5432"
    kubernetes = await blue.there(resources.SERVICES, "kubernetes", "default")
    assert reported["KUBERNETES_SERVICE_HOST"] in {kubernetes["spec"]["clusterIP"], "kubernetes"}
    assert (spec["hostname"], spec["subdomain"]) == ("h", "s")


async def test_containers_find_the_services_of_the_moment_they_start(tenants, blue, namespace):
    """As those of any cluster do; the ConfigMap of the variables exists as long as there are pods."""
    made = pod()
    made["spec"]["enableServiceLinks"] = False
    await blue.make(resources.PODS, "without", namespace, **made)
    await blue.make(resources.PODS, "with", namespace, **pod())
    await blue.phase("with", namespace=namespace)
    assert "LATE_SERVICE_HOST" not in await variables(tenants, blue, namespace)
    late = await blue.make(resources.SERVICES, "late", namespace, spec={"ports": [{"port": 80}]})
    reported = await variables(tenants, blue, namespace, when=lambda reported: "LATE_SERVICE_HOST" in reported)
    assert reported["LATE_SERVICE_HOST"] == late["spec"]["clusterIP"]
    await blue.client.delete(resources.SERVICES, "late", namespace=namespace)
    await variables(tenants, blue, namespace, when=lambda reported: "LATE_SERVICE_HOST" not in reported)
    assert set(await variables(tenants, blue, namespace, name="kubernetes.hansa.dev")) <= set(reported)
    await blue.client.delete(resources.PODS, "with", namespace=namespace)
    await tenants.super.gone(resources.CONFIG_MAPS, "services.hansa.dev", blue.below(namespace))
    assert await tenants.super.look(resources.CONFIG_MAPS, "kubernetes.hansa.dev", blue.below(namespace))
    await blue.client.delete(resources.PODS, "without", namespace=namespace)
    await tenants.super.gone(resources.CONFIG_MAPS, "kubernetes.hansa.dev", blue.below(namespace))


async def variables(tenants, tenant, namespace, *, name="services.hansa.dev", when=lambda _: True):
    """The variables of Services that containers of a tenant's namespace get."""
    found = await tenants.super.there(
        resources.CONFIG_MAPS, name, tenant.below(namespace), when=lambda one: when(one["data"])
    )
    return found["data"]


def value_of(variable, pod):
    """What a kubelet would make of it."""
    if "valueFrom" not in variable:
        return variable.get("value")
    key = variable["valueFrom"]["fieldRef"]["fieldPath"].removeprefix("metadata.annotations['").removesuffix("']")
    return pod["metadata"]["annotations"].get(key)


async def test_a_pods_token_is_its_tenants_and_is_good_there_and_nowhere_else(tenants, blue, green, namespace):
    await blue.make(resources.PODS, "p", namespace, **pod())
    below = await tenants.super.there(resources.PODS, "p", blue.below(namespace))
    assert below["spec"]["automountServiceAccountToken"] is False
    [volume] = [one for one in below["spec"]["volumes"] if one["name"].startswith(TOKEN_VOLUME)]
    [source] = [one["secret"]["name"] for one in volume["projected"]["sources"] if "secret" in one]
    secret = await tenants.super.there(resources.SECRETS, source, blue.below(namespace))
    [token] = [base64.b64decode(value).decode() for value in secret["data"].values()]
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    answers = []
    for side in (blue, green, tenants.super):
        answer = await side.client.request(
            "POST", "/apis/authentication.k8s.io/v1/tokenreviews", body=json.dumps(review).encode()
        )
        answers.append(json.loads(answer.body)["status"])
    assert [one.get("authenticated", False) for one in answers] == [True, False, False]
    assert answers[0]["user"]["username"] == f"system:serviceaccount:{namespace}:default"


REFUSED = {
    "hostPath": {"volumes": [{"name": "v", "hostPath": {"path": "/etc"}}]},
    "hostNetwork": {"hostNetwork": True},
    "hostPID": {"hostPID": True},
    "hostIPC": {"hostIPC": True},
    "privileged": {"containers": [{"name": "c", "image": "i", "securityContext": {"privileged": True}}]},
    "hostPorts": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]},
    "controlPlaneNodes": {"nodeSelector": {"node-role.kubernetes.io/control-plane": ""}},
    "priorityClassName": {"priorityClassName": "system-cluster-critical"},
}


async def test_fields_that_reach_beyond_the_tenant_are_refused_with_an_event(tenants, blue, namespace):
    names = {f"p-{number}": (what, spec) for number, (what, spec) in enumerate(REFUSED.items())}
    for name, (_, spec) in names.items():
        await blue.make(resources.PODS, name, namespace, **pod(**spec))
    reported = await asyncio.gather(*(blue.event("Refused", name, namespace) for name in names))
    for event, (what, _) in zip(reported, names.values(), strict=True):
        assert what in event["message"], (what, event["message"])
    assert not (await tenants.super.client.list(resources.PODS, namespace=blue.below(namespace))).items


async def test_fields_that_a_virtual_cluster_allows_are_synced_down(tenants, blue, namespace):
    await blue.make(resources.PODS, "p", namespace, **pod(hostNetwork=True))
    await blue.event("Refused", "p", namespace)
    await tenants.super.kubectl("annotate", "vc", "blue", "tenancy.x-k8s.io/allow=hostNetwork,hostPorts")
    try:
        below = await tenants.super.there(resources.PODS, "p", blue.below(namespace))
        assert below["spec"]["hostNetwork"] is True
        await blue.make(resources.PODS, "other", namespace, **pod(hostNetwork=True, hostPID=True))
        assert "hostPID" in (await blue.event("Refused", "other", namespace))["message"]
        found = (await tenants.super.client.list(resources.PODS, namespace=blue.below(namespace))).items
        assert [one.name for one in found] == ["p"]
    finally:
        await tenants.super.kubectl("annotate", "vc", "blue", "tenancy.x-k8s.io/allow-")


async def test_a_pod_bound_to_a_node_runs_there_if_the_tenant_sees_the_node_and_is_refused_if_not(
    tenants, blue, namespace
):
    await blue.make(resources.PODS, "first", namespace, **pod())
    node = (await blue.phase("first", namespace))["spec"]["nodeName"]
    await blue.make(resources.PODS, "second", namespace, **pod(nodeName=node))
    below = await tenants.super.there(
        resources.PODS, "second", blue.below(namespace), when=lambda p: p["spec"].get("nodeName")
    )
    assert below["spec"]["nodeName"] == node
    await blue.phase("second", namespace)
    await blue.make(resources.PODS, "third", namespace, **pod(nodeName="nowhere"))
    assert "nowhere" in (await blue.event("Refused", "third", namespace))["message"]


async def test_a_daemon_set_runs_on_the_virtual_nodes_that_the_tenant_sees(tenants, blue, namespace):
    await blue.make(resources.PODS, "first", namespace, **pod())
    node = (await blue.phase("first", namespace))["spec"]["nodeName"]
    template = {"metadata": {"labels": {"app": "d"}}, "spec": pod()["spec"]}
    await blue.make(
        resources.DAEMON_SETS, "d", namespace, spec={"selector": {"matchLabels": {"app": "d"}}, "template": template}
    )

    async def running():
        found = (await tenants.super.client.list(resources.PODS, namespace=blue.below(namespace), labels="app=d")).items
        used = sorted(one.spec["nodeName"] for one in found if one.status.get("phase") == "Running")
        seen = sorted(one.name for one in (await blue.client.list(resources.NODES)).items)
        assert used == seen, "one pod for each node"
        return used

    assert node in await eventually(running, within=60)


async def test_a_pod_that_the_super_cluster_refuses_gets_an_event_and_is_retried_when_it_can_succeed(
    tenants, blue, namespace
):
    below = blue.below(namespace)
    await tenants.super.there(resources.NAMESPACES, below)
    await tenants.super.kubectl("-n", below, "create", "quota", "q", "--hard=pods=0")
    await tenants.super.kubectl("-n", below, "wait", "quota/q", "--for=jsonpath={.status.hard.pods}=0", "--timeout=30s")
    await blue.make(resources.PODS, "p", namespace, **pod())
    reported = await blue.event("Refused", "p", namespace)
    assert "exceeded quota" in reported["message"]
    await tenants.super.kubectl("-n", below, "delete", "quota", "q")
    await blue.phase("p", namespace)


@pytest.fixture
async def second_namespace(tenants):
    """Another namespace of the same name in each tenant."""
    name = fresh_name()
    for tenant in tenants.tenants.values():
        await tenant.make(resources.NAMESPACES, name)
    yield name
    for tenant in tenants.tenants.values():
        await tenant.client.delete(resources.NAMESPACES, name)


@pytest.mark.parametrize("scope", ["own namespace", "namespaces", "namespaceSelector"])
async def test_affinity_sees_only_the_pods_of_the_tenant(tenants, blue, green, namespace, second_namespace, scope):
    where = namespace if scope == "own namespace" else second_namespace
    scopes = {"namespaces": {"namespaces": [where]}, "namespaceSelector": {"namespaceSelector": {}}}
    app = {"app": fresh_name("app")}
    term = {"labelSelector": {"matchLabels": app}, "topologyKey": "kubernetes.io/hostname", **scopes.get(scope, {})}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    await green.make(resources.PODS, "wanted", where, **pod(metadata={"labels": app}))
    await green.phase("wanted", where)
    await blue.make(resources.PODS, "early", namespace, **pod(affinity=affinity))
    await tenants.super.there(resources.PODS, "early", blue.below(namespace), when=is_unschedulable)
    # Another pod than the early one: kube-scheduler retries pods with a namespaceSelector only after five minutes
    # (kubernetes/kubernetes#141953).
    await blue.make(resources.PODS, "wanted", where, **pod(metadata={"labels": app}))
    wanted = await blue.phase("wanted", where)
    await blue.make(resources.PODS, "near", namespace, **pod(affinity=affinity))
    near = await blue.phase("near", namespace)
    assert near["spec"]["nodeName"] == wanted["spec"]["nodeName"]


def is_unschedulable(found):
    """The scheduler of the super cluster found no node for the pod."""
    return any(one.get("reason") == "Unschedulable" for one in found["status"].get("conditions", ()))


NO_NODES = "no-nodes"


async def refuse_nodes(tenant):
    """Nodes can't be created in this tenant: its pods stay unbound while their copies run."""
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"], "operations": ["CREATE"]}]
    spec = {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "false"}]}
    await tenant.make(POLICIES, NO_NODES, spec=spec)
    await tenant.make(POLICY_BINDINGS, NO_NODES, spec={"policyName": NO_NODES, "validationActions": ["Deny"]})
    node = Object.of({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "tried"}})

    async def is_refused():
        try:
            await tenant.client.create(resources.NODES, node)
        except errors.ApiError:
            return True
        await tenant.client.delete(resources.NODES, "tried")
        return False

    await eventually(is_refused, within=60)


async def test_the_next_pod_of_a_name_begins_when_the_one_before_has_ended_although_it_was_never_bound(
    tenants, clusters, tmp_path
):
    lone = Tenants(tenants.super, tmp_path)
    tenant = await lone.add(fresh_name("vc"), clusters["spare"])
    below = tenant.below()
    await refuse_nodes(tenant)
    template = {"metadata": {"labels": {"app": "w"}}, "spec": pod(terminationGracePeriodSeconds=77)["spec"]}
    spec = {"serviceName": "w", "replicas": 1, "selector": {"matchLabels": {"app": "w"}}, "template": template}
    await tenant.make(resources.STATEFUL_SETS, "w", "default", spec=spec)
    old = await tenants.super.there(resources.PODS, "w-0", below, when=lambda one: one["spec"].get("nodeName"))
    # Its containers take their time to end.
    held = {"metadata": {"finalizers": ["hansa.dev/ending"]}}
    await tenants.super.client.patch(resources.PODS, "w-0", held, namespace=below)
    above = await tenant.there(resources.PODS, "w-0", "default")
    assert "nodeName" not in above["spec"]
    async with tenants.super.watched(resources.PODS, below) as versions:
        await tenant.client.delete(resources.PODS, "w-0", namespace="default")
        [first, *_] = await eventually(lambda: leaving(versions), within=60)
        assert first.metadata.deletion_grace_period_seconds == 77, "its own"
        new = await tenant.there(resources.PODS, "w-0", "default", when=lambda one: uid(one) != uid(above))
        still = await tenants.super.there(resources.PODS, "w-0", below)
        assert uid(still) == uid(old)
        await tenants.super.client.patch(resources.PODS, "w-0", {"metadata": {"finalizers": None}}, namespace=below)
        copy = await tenants.super.there(resources.PODS, "w-0", below, when=lambda one: uid(one) != uid(old))
    assert copy["metadata"]["annotations"][UPPER_UID] == uid(new)
    for resource in (POLICY_BINDINGS, POLICIES):
        await tenant.client.delete(resource, NO_NODES)
    await tenant.client.delete(resources.STATEFUL_SETS, "w", namespace="default")
    await tenants.super.kubectl("delete", "vc", next(iter(lone.tenants)))
    await tenants.super.gone(resources.NAMESPACES, below)


def uid(manifest):
    return manifest["metadata"]["uid"]
