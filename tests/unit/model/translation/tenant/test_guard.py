"""What tenants' pods and Services may not do, unless it is allowed: one sentence each."""

from typing import Any

import pytest

from hansa.kube import resources
from hansa.model import keys
from hansa.model.translation.tenant.settings import Allowance
from tenants import a_link, a_pod, a_service, an_object, refusal

ROLE = "node-role.kubernetes.io/control-plane"
OTHERS = " which its VirtualCluster does not allow"


def container(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "image": "main:1"} | fields]}


def security(**fields: Any) -> dict[str, Any]:
    return container(securityContext=fields)


def term(operator: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": ROLE, "operator": operator}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


@pytest.mark.parametrize(
    ("spec", "allowance", "fact"),
    [
        ({"volumes": [{"name": "v", "hostPath": {"path": "/etc"}}]}, "hostPath", "volume v is /etc of its node"),
        ({"hostNetwork": True}, "hostNetwork", "it is on the network of its node"),
        ({"hostPID": True}, "hostPID", "it sees the processes of its node"),
        ({"hostIPC": True}, "hostIPC", "it shares memory with its node"),
        (container(ports=[{"hostPort": 80}]), "hostPorts", "container main takes port 80 of its node"),
        (security(privileged=True), "privileged", "container main is privileged"),
        (security(procMount="Unmasked"), "privileged", "container main sees /proc unmasked"),
        (
            security(capabilities={"add": ["CAP_SYS_ADMIN"]}),
            "privileged",
            "container main has the capability CAP_SYS_ADMIN",
        ),
        (security(windowsOptions={"hostProcess": True}), "privileged", "container main runs as a process of its node"),
        ({"nodeSelector": {ROLE: ""}}, "controlPlaneNodes", "it asks for a control-plane node"),
        (term("Exists"), "controlPlaneNodes", "it asks for a control-plane node"),
        (
            {"tolerations": [{"operator": "Exists"}]},
            "controlPlaneNodes",
            "it tolerates the taint of control-plane nodes",
        ),
        (
            {"tolerations": [{"key": ROLE, "effect": "NoSchedule"}]},
            "controlPlaneNodes",
            "it tolerates the taint of control-plane nodes",
        ),
        (
            {"priorityClassName": "system-node-critical"},
            "priorityClasses",
            "priority class system-node-critical is not one that the super cluster offers",
        ),
        (
            {"imagePullSecrets": [{"name": "platform"}]},
            "imagePullSecrets",
            "image pull secret platform is not in namespace shop",
        ),
    ],
)
def test_what_touches_more_than_the_tenants_own_is_refused_unless_it_is_allowed(
    spec: dict[str, Any], allowance: str, fact: str
) -> None:
    pod = a_pod(spec)
    assert refusal(pod) == f"{fact},{OTHERS} ({allowance})"
    assert refusal(pod, a_link(allowed=frozenset(Allowance) - {Allowance(allowance)})) == refusal(pod)
    assert refusal(pod, a_link(allowed=frozenset({Allowance(allowance)}))) == ""


@pytest.mark.parametrize(
    "spec",
    [
        {},
        term("DoesNotExist"),
        {"tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]},
        security(privileged=False, capabilities={"add": ["NET_BIND_SERVICE"], "drop": ["ALL"]}),
        container(ports=[{"containerPort": 80}]),
        {"volumes": [{"name": "v", "emptyDir": {}}], "hostNetwork": None},
    ],
)
def test_what_any_pod_may_do_is_not_refused(spec: dict[str, Any]) -> None:
    assert refusal(a_pod(spec)) == ""


@pytest.mark.parametrize("kind", ["initContainers", "ephemeralContainers"])
def test_every_sort_of_container_is_looked_at(kind: str) -> None:
    bad = {kind: [{"name": "other", "securityContext": {"privileged": True}}]}
    assert refusal(a_pod(bad)).startswith("container other is privileged")


def test_ports_of_a_pod_on_its_nodes_network_are_allowed_with_it() -> None:
    pod = a_pod(container(ports=[{"hostPort": 80}]) | {"hostNetwork": True})
    assert refusal(pod, a_link(allowed=frozenset({Allowance.HOST_NETWORK}))) == ""


def test_a_priority_class_is_good_if_the_super_cluster_offers_it_whatever_the_tenant_says() -> None:
    def a_class(label: str) -> Any:
        return an_object("PriorityClass", "urgent", labels={keys.SUPER_PUBLIC: label})

    pod = a_pod({"priorityClassName": "urgent"})
    assert refusal(pod, a_link(below=[a_class("true")])) == ""
    assert refusal(pod, a_link(below=[a_class("false")]))
    assert refusal(pod, a_link(above=[a_class("true")])), "a tenant may label its own as it likes"


def test_a_pull_secret_of_the_tenants_own_is_good() -> None:
    pod = a_pod({"imagePullSecrets": [{"name": "mine"}]})
    assert refusal(pod, a_link([an_object("Secret", "mine", "shop")])) == ""
    assert refusal(pod, a_link([an_object("Secret", "mine", "elsewhere")]))


def test_a_pod_may_name_a_node_that_the_tenant_sees() -> None:
    pod = a_pod({"nodeName": "n1"})
    assert refusal(pod, a_link([an_object("Node", "n1")])) == ""
    assert refusal(pod) == "node n1 is not here: a pod can only name a node that another pod of this cluster runs on"


def test_a_pod_that_was_bound_may_stay_while_its_node_is_not_seen() -> None:
    assert refusal(a_pod({"nodeName": "n1"}, annotations={keys.LOWER_UID: "1"})) == ""


def test_a_container_that_was_added_reads_only_what_is_the_tenants_below() -> None:
    added = {"name": "look", "image": "i", "envFrom": [{"secretRef": {"name": "keys"}}]}
    pod = a_pod({"ephemeralContainers": [added]})
    assert "reads secrets keys" in refusal(pod, a_link())
    assert refusal(pod, a_link(below=[an_object("Secret", "keys", "shop")])) == ""


def test_a_pod_that_names_a_resource_claim_is_told_that_these_do_not_travel() -> None:
    asked = a_pod({"resourceClaims": [{"name": "gpu", "resourceClaimName": "somebodys"}]})
    assert "resource claim gpu" in refusal(asked, a_link())


def test_a_service_may_not_take_addresses_of_others() -> None:
    service = a_service("web", externalIPs=["192.0.2.1"])
    assert refusal(service, resource=resources.SERVICES).startswith("externalIPs would take traffic")
    allowed = a_link(allowed=frozenset({Allowance.EXTERNAL_IPS}))
    assert refusal(service, allowed, resources.SERVICES) == ""
    assert refusal(a_service("web"), resource=resources.SERVICES) == ""
