"""A tenant's control plane as processes, from its VirtualCluster's creation to its end."""

import asyncio
import base64
import contextlib
import http.client
import json
import signal
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes

import virtual_clusters
from eventually import eventually
from hansa.kube import certificates, resources, watching
from hansa.kube.certificates import KeyPair, Subject
from hansa.kube.objects import Object
from hansa.tenancy.api import CLUSTER_VERSIONS, VIRTUAL_CLUSTERS, ConditionType
from operator_lab import WITHIN

APISERVER, CONTROLLERS = "kube-apiserver", "kube-controller-manager"


@pytest.fixture(scope="module")
async def tenant(manager, town):
    """A tenant that the tests of this file share, in the order in which they stand."""
    made = await manager.create("vc-sample-1", town, pkiExpireDays=30)
    return await manager.phase(made.key)


async def test_a_virtual_cluster_becomes_a_control_plane_that_its_kubeconfig_reaches(manager, tenant):
    assert (tenant.status.reason, tenant.status.message) == (
        "TenantControlPlaneRunning",
        "tenant control plane is running",
    )
    assert tenant.condition(ConditionType.READY).status == "True"
    assert tenant.condition(ConditionType.CLUSTER_VERSION_FOUND).status == "True"
    assert tenant.status.cluster_namespace == tenant.root
    config = yaml.safe_load((await manager.secret(tenant, "admin-kubeconfig"))["admin-kubeconfig"])
    assert "insecure-skip-tls-verify" not in config["clusters"][0]["cluster"]
    assert config["current-context"] == "default"
    async with manager.client(tenant) as client:
        names = {one.name for one in (await client.list(resources.NAMESPACES)).items}
        assert names >= {"default", "kube-system", "kube-public", "kube-node-lease"}
        service = await client.get(resources.SERVICES, "kubernetes", namespace="default")
        assert service.spec["clusterIP"] == str(tenant.service_cidr[1])
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"}}
        spec = {"containers": [{"name": "c", "image": "example.com/app:1"}]}
        await client.create(resources.PODS, Object.of({**pod, "spec": spec}), dry_run=True)


async def test_the_root_namespace_is_annotated_with_its_owner(manager, tenant):
    root = await manager.meta.get(resources.NAMESPACES, tenant.root)
    assert root.annotations == {
        "tenancy.x-k8s.io/vcname": tenant.name,
        "tenancy.x-k8s.io/vcnamespace": tenant.namespace,
        "tenancy.x-k8s.io/vcuid": tenant.uid,
        "tenancy.x-k8s.io/vcrootns": "true",
    }
    assert "virtualcluster.finalizer.process" in tenant.object.metadata.finalizers


async def test_the_secrets_have_the_names_and_keys_of_the_reference(manager, tenant):
    found = {one.name: one for one in (await manager.meta.list(resources.SECRETS, namespace=tenant.root)).items}
    shapes = {name: (one.get("type"), set(one.get("data"))) for name, one in found.items()}
    tls = ("kubernetes.io/tls", {"tls.crt", "tls.key"})
    assert shapes == {
        "root-ca": tls,
        "apiserver-ca": tls,
        "etcd-ca": tls,
        "front-proxy-ca": tls,
        **dict.fromkeys(("etcd-root-ca", "etcd-server", "etcd-client"), tls),
        "serviceaccount-rsa": tls,
        "controller-manager-kubeconfig": ("Opaque", {"controller-manager-kubeconfig"}),
        "admin-kubeconfig": ("Opaque", {"admin-kubeconfig"}),
    }
    assert (await manager.secret(tenant, "serviceaccount-rsa"))["tls.crt"].startswith(b"-----BEGIN PUBLIC KEY")


async def test_certificates_are_valid_for_the_days_of_the_spec(manager, tenant):
    for name in ("apiserver-ca", "etcd-ca", "front-proxy-ca"):
        certificate = x509.load_pem_x509_certificate((await manager.secret(tenant, name))["tls.crt"])
        days = (certificate.not_valid_after_utc - certificate.not_valid_before_utc) / timedelta(days=1)
        assert round(days) == 30
    served = x509.load_pem_x509_certificate((await manager.secret(tenant, "apiserver-ca"))["tls.crt"])
    assert served.subject.rfc4514_string() == f"CN={tenant.root}"
    names = served.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "kubernetes.default.svc.cluster.local" in names.get_values_for_type(x509.DNSName)


async def test_only_the_front_proxy_certificate_may_act_for_another_user(manager, tenant, tmp_path):
    """As its aggregation layer does. Another certificate of the same name authenticates only itself."""
    root, front = [await manager.secret(tenant, name) for name in ("root-ca", "front-proxy-ca")]
    authority = KeyPair(root["tls.crt"], root["tls.key"])
    other = certificates.issue(authority, Subject("front-proxy-client"), datetime.now(UTC))
    config = yaml.safe_load((await manager.secret(tenant, "admin-kubeconfig"))["admin-kubeconfig"])
    server = config["clusters"][0]["cluster"]["server"]

    async def who(certificate, key):
        files = [tmp_path / name for name in ("ca", "crt", "key")]
        for path, content in zip(files, (authority.certificate, certificate, key), strict=True):
            path.write_bytes(content)
        return await asyncio.to_thread(_name_behind, server, *files, claiming="somebody")

    assert await who(front["tls.crt"], front["tls.key"]) == "somebody"
    assert await who(other.certificate, other.key) == "front-proxy-client"


def _name_behind(server, ca, certificate, key, *, claiming):
    """The user that the API server sees in a request with this certificate and the name of another user in a header."""
    trust = ssl.create_default_context(cafile=str(ca))
    trust.load_cert_chain(certificate, key)
    connection = http.client.HTTPSConnection(server.removeprefix("https://"), context=trust, timeout=10)
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    headers = {"Content-Type": "application/json", "X-Remote-User": claiming}
    path = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    with contextlib.closing(connection):
        connection.request("POST", path, json.dumps(asked), headers)
        return json.load(connection.getresponse())["status"]["userInfo"]["username"]


async def test_a_manager_that_is_killed_leaves_its_tenants_running_and_finds_them_again(manager, tenant):
    before = await manager.whole(tenant)
    await manager.kill()
    async with manager.client(tenant) as client:
        assert await client.version()
    await manager.start()
    # It looked at the tenant again as soon as it repairs what dies, and touched nothing until then.
    assert manager.processes(tenant) == before
    before[CONTROLLERS].signal(signal.SIGKILL)
    after = await eventually(lambda: _other(manager, tenant, CONTROLLERS, before), within=WITHIN)
    assert (after["etcd"], after[APISERVER]) == (before["etcd"], before[APISERVER])


@pytest.mark.parametrize("component", [APISERVER, "etcd"])
async def test_a_component_that_dies_is_restarted_with_its_data(manager, tenant, component):
    async with manager.client(tenant) as client:
        name = f"kept-{component}"
        await client.create(
            resources.NAMESPACES, Object.of({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        )
        before = await manager.whole(tenant)
        before[component].signal(signal.SIGKILL)
        await eventually(lambda: _other(manager, tenant, component, before), within=WITHIN)

        async def serves():
            with contextlib.suppress(Exception):
                return await client.get(resources.NAMESPACES, name)

        await eventually(serves, within=WITHIN)


async def test_a_certificate_that_ends_soon_is_replaced_without_cutting_anyone_off(manager, tenant):
    await manager.phase(tenant.key)
    root = await manager.secret(tenant, "root-ca")
    old = await _served(manager, tenant)
    before = await manager.whole(tenant)
    now = datetime.now(UTC)
    names = tuple(str(name.value) for name in old.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    ending = certificates.issue(
        KeyPair(root["tls.crt"], root["tls.key"]),
        Subject(tenant.root, names=names, is_both=True),
        now - timedelta(days=29),
        lifetime=timedelta(days=30),
    )
    data = {"tls.crt": base64.b64encode(ending.certificate).decode(), "tls.key": base64.b64encode(ending.key).decode()}
    async with manager.client(tenant) as client:
        changes = watching.watch(client, resources.CONFIG_MAPS, namespace="default")
        async with contextlib.aclosing(changes):
            watched = asyncio.create_task(_until_named(changes, "after-rotation"))
            await manager.meta.patch(resources.SECRETS, "apiserver-ca", {"data": data}, namespace=tenant.root)
            await manager.meta.patch(
                VIRTUAL_CLUSTERS,
                tenant.name,
                {"metadata": {"annotations": {"look": "again"}}},
                namespace=tenant.namespace,
            )

            async def replaced():
                served = await _served(manager, tenant)
                assert served.not_valid_after_utc > now + timedelta(days=20), served.not_valid_after_utc
                assert served.serial_number != old.serial_number
                return served

            await eventually(replaced, within=WITHIN)
            made = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "after-rotation", "namespace": "default"},
            }
            await client.create(resources.CONFIG_MAPS, Object.of(made))
            async with asyncio.timeout(60):
                assert await watched == 0, "the watch went through all of it without a break"
    assert manager.processes(tenant) == before, "nothing was restarted"
    assert await manager.secret(tenant, "root-ca") == root
    # vn-agents know the API server by both certificates.
    served, recorded = await _served(manager, tenant), (await manager.find(tenant.key)).status.kubelet_client
    assert recorded.hashes == (served.fingerprint(hashes.SHA256()).hex(), old.fingerprint(hashes.SHA256()).hex())
    assert recorded.ca.encode() == root["tls.crt"]


async def test_an_upgrade_goes_component_by_component_and_keeps_tokens_good(manager, tenant):
    async with manager.client(tenant) as client:
        request = Object.of({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
        issued = await client.call(resources.SERVICE_ACCOUNTS, "default", "token", body=request, namespace="default")
        before = await manager.whole(tenant)
        version = virtual_clusters.cluster_version(
            "cv-next",
            apiserver=["--max-requests-inflight=77", "--etcd-servers=https://elsewhere:2379", "--kubelet-https=true"],
            controller_manager=["--concurrent-deployment-syncs=3", "--kubeconfig=/etc/kubernetes/kubeconfig"],
        )
        for process in before.values():
            program = Path(process.argv[0])
            (manager.versions / "next").mkdir(parents=True, exist_ok=True)
            (manager.versions / "next" / program.name).symlink_to(program)
        version = version.with_metadata(annotations={"hansa.dev/binaries": "next"})
        await manager.meta.create(CLUSTER_VERSIONS, version)
        change = {"spec": {"clusterVersionName": "cv-next"}}
        await manager.meta.patch(VIRTUAL_CLUSTERS, tenant.name, change, namespace=tenant.namespace)
        upgraded = await manager.phase(tenant.key, reason="TenantControlPlaneUpgradeCompleted")
        after = manager.processes(tenant)
        assert "--max-requests-inflight=77" in after[APISERVER].argv
        assert "--concurrent-deployment-syncs=3" in after[CONTROLLERS].argv
        # Where things are is the manager's to say, and what this version of the program does not know is left out.
        assert not [word for word in after[APISERVER].argv if "elsewhere" in word or "kubelet-https" in word]
        assert not [word for word in after[CONTROLLERS].argv if "/etc/kubernetes" in word]
        programs = {Path(process.argv[0]).parent for process in after.values()}
        assert programs == {manager.versions / "next"}, "all of them are of the new version"
        born = [after[name].start_time for name in ("etcd", APISERVER, CONTROLLERS)]
        assert born == sorted(born), "one came after the other"
        await client.get(resources.NAMESPACES, "kept-etcd")
        assert upgraded.status.cluster_version == "cv-next"
        review = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": issued.status["token"]},
        }
        answer = await client.request(
            "POST", "/apis/authentication.k8s.io/v1/tokenreviews", body=Object.of(review).to_json()
        )
        assert Object.parse(answer.body).status["authenticated"] is True


async def test_a_version_that_changes_waits_until_an_upgrade_is_asked_for(manager, tenant):
    live = (await manager.meta.get(CLUSTER_VERSIONS, "cv-next")).to_dict()
    container = live["spec"]["apiServer"]["statefulset"]["spec"]["template"]["spec"]["containers"][0]
    container["args"] = ["--max-requests-inflight=88"]
    changed = await manager.meta.update(CLUSTER_VERSIONS, Object.of(live))
    before = await manager.whole(tenant)
    before[CONTROLLERS].signal(signal.SIGKILL)  # even when something is repaired
    await eventually(lambda: _other(manager, tenant, CONTROLLERS, before), within=WITHIN)
    assert "--max-requests-inflight=77" in manager.processes(tenant)[APISERVER].argv
    asked = {"metadata": {"labels": {"tenancy.x-k8s.io/ready-for-upgrade": "true"}}}
    await manager.meta.patch(VIRTUAL_CLUSTERS, tenant.name, asked, namespace=tenant.namespace)

    async def upgraded():
        vc = await manager.find(tenant.key)
        assert vc.object.labels.get("tenancy.x-k8s.io/cluster-version-applied") == changed.version, vc.object.labels
        assert "tenancy.x-k8s.io/ready-for-upgrade" not in vc.object.labels
        return "--max-requests-inflight=88" in manager.processes(tenant)[APISERVER].argv

    await eventually(upgraded, within=WITHIN)


async def test_a_tenant_outlives_its_version(manager, tenant):
    await manager.meta.delete(CLUSTER_VERSIONS, "cv-next")

    async def reported():
        vc = await manager.find(tenant.key)
        condition = vc.condition(ConditionType.CLUSTER_VERSION_FOUND)
        assert (condition.status, condition.reason) == ("False", "NotFound"), condition
        return vc.is_running

    await eventually(reported, within=WITHIN)
    async with manager.client(tenant) as client:
        assert await client.version()


async def test_a_deleted_tenant_leaves_nothing(manager, tenant):
    before = {one.name for one in (await manager.meta.list(resources.NAMESPACES)).items}
    await manager.delete(tenant)
    after = {one.name for one in (await manager.meta.list(resources.NAMESPACES)).items}
    assert before - after == {tenant.root}


async def _other(manager, tenant, component, before):
    found = manager.processes(tenant)
    assert component in found, f"{component} does not run"
    assert found[component].pid != before[component].pid
    return found


async def _served(manager, vc):
    """The certificate that the API server presents now."""
    record = manager.tenant_folder(vc).record()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", record.port, ssl=context)
    try:
        return x509.load_der_x509_certificate(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
    finally:
        writer.transport.abort()


async def _until_named(changes, name):
    """Follow a watch until an object of that name comes; how often it broke until then."""
    breaks = 0
    async for change in changes:
        match change:
            case watching.Added(obj) if obj.name == name:
                return breaks
            case watching.Interrupted():
                breaks += 1
    raise AssertionError("the watch ended")
