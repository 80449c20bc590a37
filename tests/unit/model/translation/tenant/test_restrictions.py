"""What tenants' pods and Services may not do unless it is allowed; a refusal names field, value and remedy."""

from typing import Any

import pytest

from hansa.kube import resources
from hansa.model import keys
from hansa.model.translation.tenant.tenant_settings import Allowance, PodSecurity
from tenants import a_link, a_pod, a_service, an_object, desired, refusal

ROLE = "node-role.kubernetes.io/control-plane"
CONTAINER = "spec.containers[main]"
SECURITY = f"{CONTAINER}.securityContext"


def container(**fields: Any) -> dict[str, Any]:
    return {"containers": [{"name": "main", "image": "main:1"} | fields]}


def security(**fields: Any) -> dict[str, Any]:
    return container(securityContext=fields)


def term(operator: str) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": ROLE, "operator": operator}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


@pytest.mark.parametrize(
    ("spec", "allowance", "field"),
    [
        (
            {"volumes": [{"name": "v", "hostPath": {"path": "/etc"}}]},
            "hostPath",
            'spec.volumes[v].hostPath: {"path":"/etc"}',
        ),
        ({"hostNetwork": True}, "hostNetwork", "spec.hostNetwork: true"),
        ({"hostPID": True}, "hostPID", "spec.hostPID: true"),
        ({"hostIPC": True}, "hostIPC", "spec.hostIPC: true"),
        ({"hostFuture": {"all": True}}, "unknownFields", "spec.hostFuture"),
        ({"workloadRef": {"name": "w"}}, "unknownFields", "spec.workloadRef"),
        (container(hostFuture=1), "unknownFields", "spec.containers[0].hostFuture"),
        (
            {"ephemeralContainers": [{"name": "e", "hostFuture": 1}]},
            "unknownFields",
            "spec.ephemeralContainers[0].hostFuture",
        ),
        (container(ports=[{"hostPort": 80}]), "hostPorts", f"{CONTAINER}.ports.hostPort: 80"),
        (security(privileged=True), "privileged", f"{SECURITY}.privileged: true"),
        (security(procMount="Unmasked"), "privileged", f"{SECURITY}.procMount: Unmasked"),
        (
            security(capabilities={"add": ["CAP_SYS_ADMIN"]}),
            "privileged",
            f"{SECURITY}.capabilities.add: CAP_SYS_ADMIN",
        ),
        (security(windowsOptions={"hostProcess": True}), "privileged", f"{SECURITY}.windowsOptions.hostProcess: true"),
        ({"nodeSelector": {ROLE: ""}}, "controlPlaneNodes", f"spec.nodeSelector: {ROLE}"),
        (term("Exists"), "controlPlaneNodes", f"spec.affinity.nodeAffinity: {ROLE}"),
        (
            {"tolerations": [{"operator": "Exists"}]},
            "controlPlaneNodes",
            "spec.tolerations[0]: tolerates all taints",
        ),
        (
            {"tolerations": [{"key": "spot", "operator": "Exists"}, {"key": ROLE, "effect": "NoExecute"}]},
            "controlPlaneNodes",
            f"spec.tolerations[1]: tolerates {ROLE}",
        ),
        (
            {"imagePullSecrets": [{"name": "platform"}]},
            "imagePullSecrets",
            "spec.imagePullSecrets: platform (Secret shop/platform not found; create it)",
        ),
    ],
)
def test_what_touches_more_than_the_tenants_own_is_refused_unless_it_is_allowed(
    spec: dict[str, Any], allowance: str, field: str
) -> None:
    pod = a_pod(spec)
    remedy = f"allow it with annotation tenancy.x-k8s.io/allow={allowance} on its VirtualCluster"
    assert refusal(pod) == f"{field} is not allowed for tenant vc-sample-1; {remedy}"
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
def test_every_sort_of_container_is_checked(kind: str) -> None:
    bad = {kind: [{"name": "other", "securityContext": {"privileged": True}}]}
    assert refusal(a_pod(bad)).startswith(f"spec.{kind}[other].securityContext.privileged: true is not allowed")


def test_ports_of_a_pod_on_its_nodes_network_are_allowed_with_it() -> None:
    pod = a_pod(container(ports=[{"hostPort": 80}]) | {"hostNetwork": True})
    assert refusal(pod, a_link(allowed=frozenset({Allowance.HOST_NETWORK}))) == ""


CLASS_FIELDS = [("PriorityClass", "priorityClassName"), ("RuntimeClass", "runtimeClassName")]


@pytest.mark.parametrize(("kind", "field"), CLASS_FIELDS)
def test_a_pod_names_only_classes_that_the_super_cluster_offers(kind: str, field: str) -> None:
    pod, offered = a_pod({field: "urgent"}), {keys.SUPER_PUBLIC: "true"}
    assert refusal(pod, a_link(below=[an_object(kind, "urgent", labels=offered)])) == ""
    own = a_link(above=[an_object(kind, "urgent", labels=offered)])
    assert refusal(pod, own), "a tenant may label its own as it likes"
    assert refusal(pod, a_link(below=[an_object(kind, "urgent")])) == refusal(pod) == refusal(pod, own)
    assert refusal(pod) == (
        f"spec.{field}: {kind} urgent is not offered to tenant vc-sample-1; name one that"
        f" 'kubectl get {kind.lower()}es' lists, or offer it with annotation"
        f" tenancy.x-k8s.io/offered-to=default/vc-sample-1 on the {kind} of the super cluster"
    )


def test_each_class_that_a_pod_names_is_checked() -> None:
    offered = an_object("PriorityClass", "urgent", labels={keys.SUPER_PUBLIC: "true"})
    pod = a_pod({"priorityClassName": "urgent", "runtimeClassName": "kata"})
    assert refusal(pod, a_link(below=[offered])).startswith("spec.runtimeClassName: RuntimeClass kata")


def test_any_priority_class_may_be_named_where_that_is_allowed() -> None:
    allowed = a_link(allowed=frozenset({Allowance.PRIORITY_CLASSES}))
    assert refusal(a_pod({"priorityClassName": "system-node-critical"}), allowed) == ""


@pytest.mark.parametrize(
    ("names", "is_offered"),
    [("default/vc-sample-1", True), ("a/b, default/vc-sample-1", True), ("default/vc", False), ("", False)],
)
def test_a_class_is_offered_to_the_tenants_that_its_annotation_names(names: str, is_offered: bool) -> None:
    named = an_object("RuntimeClass", "kata").with_metadata(annotations={keys.OFFERED_TO: names})
    assert (refusal(a_pod({"runtimeClassName": "kata"}), a_link(below=[named])) == "") is is_offered


def test_an_ingress_names_only_classes_that_the_super_cluster_offers() -> None:
    ingress = an_object("Ingress", "web", "shop", spec={"ingressClassName": "nginx"})
    assert refusal(ingress, resource=resources.INGRESSES).startswith(
        "spec.ingressClassName: IngressClass nginx is not offered"
    )
    offered = an_object("IngressClass", "nginx", labels={keys.SUPER_PUBLIC: "true"})
    assert refusal(ingress, a_link(below=[offered]), resources.INGRESSES) == ""


@pytest.mark.parametrize("key", ["CriticalAddonsOnly", "node-role.kubernetes.io/etcd", ROLE])
@pytest.mark.parametrize("more", [{"operator": "Exists"}, {"value": "yes"}, {"effect": "NoExecute"}])
def test_taints_of_a_control_plane_are_not_tolerated_in_any_form(key: str, more: dict[str, str]) -> None:
    assert refusal(a_pod({"tolerations": [{"key": key, **more}]})).startswith(f"spec.tolerations[0]: tolerates {key} ")


@pytest.mark.parametrize("allowance", ["seccomp", "appArmor", "seLinux", "privileged"])
def test_a_tenant_with_privileged_containers_may_leave_them_unconfined(allowance: str) -> None:
    unconfined = {"type": "Unconfined"}
    fields = {
        "seccomp": {"seccompProfile": unconfined},
        "appArmor": {"appArmorProfile": unconfined},
        "seLinux": {"seLinuxOptions": {"type": "spc_t"}},
    }
    for name, one in fields.items():
        is_allowed = refusal(a_pod(security(**one)), a_link(allowed=frozenset({Allowance(allowance)}))) == ""
        assert is_allowed is (allowance in (name, "privileged"))
        assert f"allow={name}" in refusal(a_pod(security(**one)))


def test_what_no_list_names_is_refused() -> None:
    assert refusal(a_pod({"volumes": [{"name": "v", "newDisk": {"id": 1}}]})) == (
        'spec.volumes[v].newDisk: {"id":1} is not allowed for tenants; remove it'
    )
    certificate = {"podCertificate": {"signerName": "example.com/x"}}
    assert refusal(a_pod({"volumes": [{"name": "v", "projected": {"sources": [certificate]}}]})) == (
        "spec.volumes[v].projected.sources.podCertificate is not allowed for tenants; remove it"
    )
    for bad in (security(newRight=True), {"securityContext": {"newRight": True}}):
        assert "unknown field `newRight`" in refusal(a_pod(bad))
    assert refusal(a_pod({"volumes": [{"name": "v", "projected": {"sources": 5}}]})).startswith("spec.volumes[v].proj")
    assert refusal(a_pod({"volumes": [{"name": "v", "emptyDir": {}, "nfs": None}]})) == ""


RESTRICTED = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    **security(allowPrivilegeEscalation=False, capabilities={"drop": ["ALL"]}),
}


def test_a_restricted_tenants_pod_says_what_it_lacks() -> None:
    restricted = a_link(pod_security=PodSecurity.RESTRICTED)
    assert refusal(a_pod(RESTRICTED), restricted) == ""
    assert refusal(a_pod(), restricted) == (
        f"{SECURITY}.runAsNonRoot: true is required of tenant vc-sample-1 by Pod Security restricted; set it, or set"
        " annotation tenancy.x-k8s.io/pod-security=baseline on its VirtualCluster"
    )
    assert refusal(a_pod(RESTRICTED | {"hostPID": True}), restricted).startswith("spec.hostPID: true is not allowed")


def test_a_windows_pod_needs_no_linux_field_of_the_restricted_standard() -> None:
    windows = {"os": {"name": "windows"}, "securityContext": {"runAsNonRoot": True}}
    assert refusal(a_pod(windows), a_link(pod_security=PodSecurity.RESTRICTED)) == ""


@pytest.mark.parametrize(
    ("level", "allowed", "label"),
    [
        ("baseline", "", "baseline"),
        ("restricted", "", "restricted"),
        ("baseline", "controlPlaneNodes", "baseline"),
        ("baseline", "nfs", "baseline"),
        ("restricted", "nfs", "baseline"),
        ("restricted", "csi", "restricted"),
        ("restricted", "hostPath", "privileged"),
        ("baseline", "seccomp", "privileged"),
    ],
)
def test_the_super_clusters_own_admission_refuses_nothing_that_is_allowed(level: str, allowed: str, label: str) -> None:
    names = frozenset(map(Allowance, allowed.split())) if allowed else frozenset()
    settings = {"pod_security": PodSecurity(level), "allowed": names}
    namespace = an_object("Namespace", "shop")
    assert desired(namespace, a_link(**settings), resources.NAMESPACES).labels[keys.POD_SECURITY_ENFORCED] == label
    unlabelled = a_link(**settings, is_pod_security_labelled=False)
    assert keys.POD_SECURITY_ENFORCED not in desired(namespace, unlabelled, resources.NAMESPACES).labels


def test_a_pull_secret_of_the_tenants_own_is_good() -> None:
    pod = a_pod({"imagePullSecrets": [{"name": "mine"}]})
    assert refusal(pod, a_link([an_object("Secret", "mine", "shop")])) == ""
    assert refusal(pod, a_link([an_object("Secret", "mine", "elsewhere")]))


def test_a_pod_may_name_a_node_that_the_tenant_sees() -> None:
    pod = a_pod({"nodeName": "n1"})
    assert refusal(pod, a_link([an_object("Node", "n1")])) == ""
    assert refusal(pod).startswith("spec.nodeName: n1 is not allowed: Node n1 not found; remove spec.nodeName")


def test_the_scheduler_decides_on_nodes_that_selectors_and_affinity_name() -> None:
    fields = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": fields}}
    for spec in ({"nodeSelector": {"kubernetes.io/hostname": "n1"}}, {"affinity": {"nodeAffinity": required}}):
        assert refusal(a_pod(spec)) == ""
    assert "nodeName" not in desired(a_pod({"nodeName": "n1"})).spec, "it would bypass taints"


def test_a_pod_with_a_copy_may_stay_while_its_node_is_not_seen() -> None:
    pod = a_pod({"nodeName": "n1"})
    assert refusal(pod, a_link(below=[an_object("Pod", "web", "shop")])) == ""
    claimed = pod.with_metadata(annotations={keys.LOWER_UID: "1"})
    assert refusal(claimed) == refusal(pod) != "", "a tenant may write the annotation"


def test_an_added_container_reads_only_lower_objects_of_the_tenant() -> None:
    added = {"name": "look", "image": "i", "envFrom": [{"secretRef": {"name": "keys"}}]}
    pod = a_pod({"ephemeralContainers": [added]})
    assert "waiting for Secret shop/keys: not found in the super cluster" in refusal(pod, a_link())
    assert refusal(pod, a_link(below=[an_object("Secret", "keys", "shop")])) == ""


def test_a_pod_with_a_resource_claim_is_refused() -> None:
    asked = a_pod({"resourceClaims": [{"name": "gpu", "resourceClaimName": "somebodys"}]})
    assert refusal(asked, a_link()).startswith("spec.resourceClaims[gpu] is not supported")


def test_a_service_may_not_take_addresses_of_others() -> None:
    service = a_service("web", externalIPs=["192.0.2.1"])
    assert refusal(service, resource=resources.SERVICES).startswith("spec.externalIPs: 192.0.2.1 is not allowed")
    allowed = a_link(allowed=frozenset({Allowance.EXTERNAL_IPS}))
    assert refusal(service, allowed, resources.SERVICES) == ""
    assert refusal(a_service("web"), resource=resources.SERVICES) == ""
