"""`hansa doctor` on real clusters: each thing that is broken is found, with how to fix it."""

import base64
import datetime

import pytest
import yaml

from command_runs import hansa
from hansa.admission import configuration
from hansa.app.doctor import examination
from hansa.app.doctor.finding import Level
from hansa.app.status.overview import Asked
from hansa.kube import certificates, resources
from hansa.kube.certificates import KeyPair, Subject
from hansa.kube.credentials.source import CredentialSource
from hansa.kube.resource import Resource
from hansa.model import stamp
from hansa.runtime.clock import SystemClock
from hansa.tenancy import installing
from hansa.tenancy.api import VIRTUAL_CLUSTERS

CLUSTERS = Resource("cluster.x-k8s.io", "v1alpha4", "clusters", kind="Cluster")
ELSEWHERE = {"matchLabels": {"no": "namespace"}}  # a webhook that is called for no object


class Clock(SystemClock):
    """A clock that is wrong."""

    def __init__(self, ahead):
        self._ahead = ahead

    def wall(self):
        return super().wall() + self._ahead


async def examined(side, *, ahead=datetime.timedelta(0), deadline=5.0):
    asked = Asked("it", CredentialSource(side.cluster.kubeconfig))
    [found] = await examination.examine([asked], deadline=deadline, clock=Clock(ahead))
    return found.findings


def bad(findings, check):
    return [one for one in findings if one.check == check and one.level is not Level.OK]


def config_of(side, **user):
    config = yaml.safe_load(side.cluster.kubeconfig.read_text())
    config["users"][0]["user"] = user
    return yaml.safe_dump(config)


def encoded(data):
    return base64.b64encode(data).decode()


async def test_a_cluster_that_is_well_has_no_finding_but_good_ones(clusters):
    ran = await hansa("doctor", "--kubeconfig", str(clusters["r1"].cluster.kubeconfig), "-o", "json")
    [cluster] = ran.json["clusters"]
    assert {one["level"] for one in cluster["findings"]} == {"ok"}, cluster
    assert (ran.code, ran.json["healthy"]) == (0, True)


async def test_credentials_that_are_refused_and_servers_that_are_gone_are_found(clusters, meta, make, super_secret):
    await make(CLUSTERS, "r1", "default", status={"phase": "Provisioned"})
    await super_secret("r1", config_of(clusters["r1"], token="no"))
    await make(CLUSTERS, "gone", "default", status={"phase": "Provisioned"})
    gone = config_of(clusters["r1"], token="no").replace(clusters["r1"].cluster.server, "https://127.0.0.1:1")
    await super_secret("gone", gone)
    refused, silent = sorted(bad(await examined(meta), "reachability"), key=lambda one: "gone" in one.what)
    assert ("(401)" in refused.what, 'hansa join r1 --apply"' in refused.remedy) == (True, True), refused
    assert "cannot be reached" in silent.what
    assert silent.remedy.startswith("check that the API server is running")


async def test_a_client_certificate_that_ends_soon_is_found(clusters, meta, make, super_secret):
    pki = clusters["r1"].cluster.folder / "pki"
    authority = KeyPair((pki / "ca.crt").read_bytes(), (pki / "ca.key").read_bytes())
    who = Subject("admin", ("system:masters",))
    pair = certificates.issue(authority, who, datetime.datetime.now(datetime.UTC), lifetime=datetime.timedelta(days=3))
    await make(CLUSTERS, "r1", "default", status={"phase": "Provisioned"})
    user = {"client-certificate-data": encoded(pair.certificate), "client-key-data": encoded(pair.key)}
    await super_secret("r1", config_of(clusters["r1"], **user))
    [found] = bad(await examined(meta), "certificates")
    assert found.level is Level.WARNING
    assert found.what.startswith("super cluster r1: the client certificate of the kubeconfig ends on")


async def test_a_serving_certificate_that_has_ended_is_found(meta):
    found = bad(await examined(meta, ahead=datetime.timedelta(days=3651)), "certificates")
    assert any("the certificate of https://127.0.0.1" in one.what and one.level is Level.PROBLEM for one in found)


async def test_a_clock_that_is_wrong_is_found(meta):
    [found] = bad(await examined(meta, ahead=datetime.timedelta(minutes=-20)), "clocks")
    assert found.level is Level.PROBLEM
    assert "ahead of that of this machine" in found.what


async def test_a_lease_from_the_future_is_found(meta, make):
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(minutes=10)
    spec = {"holderIdentity": "vm7", "leaseDurationSeconds": 15, "renewTime": f"{later:%FT%T}.000000Z"}
    await make(resources.LEASES, "hansa-agent", "kube-system", spec=spec)
    [found] = bad(await examined(meta), "clocks")
    assert "in the future by vm7" in found.what


async def test_a_definition_without_a_field_of_this_version_is_found(meta):
    name = "virtualclusters.tenancy.x-k8s.io"
    before = await meta.client.get(resources.CUSTOM_RESOURCE_DEFINITIONS, name)
    spec = before.spec
    del spec["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["pkiExpireDays"]
    await meta.client.patch(resources.CUSTOM_RESOURCE_DEFINITIONS, name, {"spec": {"versions": spec["versions"]}})
    try:
        [found] = bad(await examined(meta), "versions")
    finally:
        await installing.install(meta.client)
    assert "lacks .spec.pkiExpireDays" in found.what
    assert bad(await examined(meta), "versions") == []


@pytest.fixture
def webhook(make):
    """Creates a webhook configuration that is called for nothing."""

    async def create(config):
        entry = {
            "name": configuration.WEBHOOK,
            "clientConfig": config,
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
            "namespaceSelector": ELSEWHERE,
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
        }
        await make(configuration.RESOURCE, configuration.DEFAULT_NAME, webhooks=[entry])

    return create


async def test_a_webhook_without_a_service_endpoints_or_a_ca_is_found(meta, make, webhook):
    await webhook({"service": {"namespace": "default", "name": "hook"}})
    found = bad(await examined(meta), "webhooks")
    assert ["caBundle" in one.what for one in found] == [True, False]
    assert found[1].what.endswith("points to Service default/hook, which does not exist")
    assert "kubectl delete MutatingWebhookConfiguration/hansa-cluster-selector" in found[1].remedy
    await make(resources.SERVICES, "hook", "default", spec={"ports": [{"port": 443}]})
    assert bad(await examined(meta), "webhooks")[1].what.endswith("has no ready endpoint")
    await ready(make, "hook", "default")
    ca = certificates.authority("ca", datetime.datetime.now(datetime.UTC)).certificate
    hooks = [{"name": configuration.WEBHOOK, "clientConfig": {"caBundle": encoded(ca)}}]
    patch = {"apiVersion": configuration.RESOURCE.api_version, "kind": configuration.RESOURCE.kind, "webhooks": hooks}
    name = configuration.DEFAULT_NAME
    await meta.kubectl("patch", "mutatingwebhookconfiguration", name, "-p", yaml.safe_dump(patch))
    assert bad(await examined(meta), "webhooks") == []


async def test_a_webhook_at_a_url_that_does_not_answer_is_found(meta, webhook):
    await webhook({"url": "https://127.0.0.1:1/x", "caBundle": ""})
    found = bad(await examined(meta), "webhooks")
    assert "cannot read the certificate of https://127.0.0.1:1/x" in found[1].what


async def ready(make, service, namespace):
    """An endpoint of a Service."""
    labels = {"labels": {"kubernetes.io/service-name": service}}
    endpoints = [{"addresses": ["192.0.2.9"], "conditions": {"ready": True}}]
    fields = {"addressType": "IPv4", "endpoints": endpoints, "ports": [{"port": 443}]}
    await make(resources.ENDPOINT_SLICES, f"{service}-1", namespace, metadata=labels, **fields)


async def test_a_tenant_without_dns_is_found(meta, make):
    annotations = {"tenancy.x-k8s.io/admin-kubeconfig": encoded(meta.cluster.kubeconfig.read_bytes())}
    status = {"phase": "Running", "clusterNamespace": "default-1-blue"}
    spec = {"clusterVersionName": "any"}
    await make(VIRTUAL_CLUSTERS, "blue", "default", metadata={"annotations": annotations}, spec=spec, status=status)
    [found] = bad(await examined(meta), "DNS")
    assert "tenant default/blue has no Service kube-system/kube-dns" in found.what
    await make(resources.SERVICES, "kube-dns", "kube-system", spec={"ports": [{"port": 53}]})
    [found] = bad(await examined(meta), "DNS")
    assert "kubectl vc exec default/blue" in found.remedy
    await ready(make, "kube-dns", "kube-system")
    assert bad(await examined(meta), "DNS") == []


async def test_a_tenant_whose_kubeconfig_cannot_be_read_is_found(meta, make):
    status = {"phase": "Running", "clusterNamespace": "nowhere"}
    await make(VIRTUAL_CLUSTERS, "red", "default", spec={"clusterVersionName": "any"}, status=status)
    [found] = bad(await examined(meta), "reachability")
    assert 'secrets "admin-kubeconfig" not found' in found.what
    assert found.remedy.startswith("delete Secret admin-kubeconfig")


@pytest.mark.parametrize(
    ("name", "level"), [("calico-node", None), ("kube-flannel-ds", Level.PROBLEM), ("x", Level.UNKNOWN)]
)
async def test_network_policies_that_nothing_enforces_are_found_where_tenants_run(meta, make, name, level):
    await make(resources.NAMESPACES, f"t-{name}", metadata={"labels": {stamp.selector(): "a"}})
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    await make(
        resources.DAEMON_SETS, name, "kube-system", spec={"selector": {"matchLabels": labels}, "template": template}
    )
    found = bad(await examined(meta), "network policy")
    assert [one.level for one in found] == ([] if level is None else [level])


async def test_what_may_not_be_read_is_unknown_and_hides_nothing_else(account):
    path = await account("blind", [])
    ran = await hansa("doctor", "--kubeconfig", str(path), "-o", "json")
    [cluster] = ran.json["clusters"]
    checks = {one["check"]: one["level"] for one in cluster["findings"]}
    assert checks.keys() >= {
        "permissions",
        "reachability",
        "versions",
        "clocks",
        "certificates",
        "webhooks",
        "network policy",
    }
    assert set(checks.values()) == {"unknown"}
    assert ran.code == 0


async def test_a_cluster_that_is_gone_is_a_problem(tmp_path, clusters):
    path = tmp_path / "kubeconfig"
    path.write_text(config_of(clusters["r1"], token="no").replace(clusters["r1"].cluster.server, "https://127.0.0.1:1"))
    ran = await hansa("doctor", "--kubeconfig", str(path))
    assert (ran.code, "check the address in the kubeconfig" in " ".join(ran.out.split())) == (1, True), ran


async def test_a_right_that_a_role_lost_is_found(clusters):
    """Service accounts that are installed are examined by an administrator."""
    side = clusters["r1"]
    where = ("--kubeconfig", str(side.cluster.kubeconfig), "--mode", "tensile")
    assert (await hansa("install", *where, "--no-wait")).code == 0
    try:
        found = [one for one in await examined(side) if one.check == "permissions"]
        assert [one.level for one in found] == [Level.OK] * 2, found
        role = await side.client.get(resources.CLUSTER_ROLES, "hansa-webhook")
        rules = [rule for rule in role.get("rules") if "nodes" not in rule["resources"]]
        await side.client.patch(resources.CLUSTER_ROLES, "hansa-webhook", {"rules": rules})
        [found] = bad(await examined(side), "permissions")
        assert found.what.startswith("service account hansa-system/hansa-webhook may not list nodes, list persist")
        assert "hansa install" in found.remedy
    finally:
        assert (await hansa("uninstall", *where)).code == 0


async def test_the_rights_of_credentials_are_those_of_a_component_or_not(meta, account):
    administrator = await hansa("doctor", "--kubeconfig", str(meta.cluster.kubeconfig), "--component", "vc-manager")
    assert "these credentials, as vc-manager: all" in administrator.out
    path = await account("half", [{"apiGroups": ["tenancy.x-k8s.io"], "resources": ["*"], "verbs": ["*"]}])
    ran = await hansa("doctor", "--kubeconfig", str(path), "--component", "vc-manager")
    words = " ".join(ran.out.split())
    assert (ran.code, "these credentials, as vc-manager may not create configmaps" in words) == (1, True), ran
    ran = await hansa("doctor", "--kubeconfig", str(path), "--component", "kubelet")
    assert (ran.code, '--component "kubelet" is not known: use one of hansa-agent' in ran.err) == (1, True), ran
