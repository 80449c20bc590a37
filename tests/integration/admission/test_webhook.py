"""A real API server calls the real `hansa webhook`; kubectl shows the mutated pods."""

import asyncio
import base64
import datetime
import json
import secrets
import ssl

import pytest

import programs
from eventually import eventually
from hansa.admission import configuration
from hansa.kube import certificates
from hansa.kube.certificates import Subject
from hansa.programs import ports
from programs import Kubectl, Refused

# The annotation in the documentation of tensile-kube.
SEED = (
    '{"tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute"},'
    '{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute"},'
    '{"key":"test","operator":"Exists","effect":"NoExecute"},'
    '{"key":"test1","operator":"Exists","effect":"NoExecute"},'
    '{"key":"test2","operator":"Exists","effect":"NoExecute"},'
    '{"key":"test3","operator":"Exists","effect":"NoExecute"}]}'
)
HOLD = [{"name": "test"}]  # a scheduling gate: these pods are never scheduled


@pytest.fixture(scope="module")
async def kube(cluster, kubectl):
    return Kubectl(kubectl, cluster.kubeconfig)


@pytest.fixture(scope="module")
async def webhook(cluster, kube, tmp_path_factory):
    """The webhook with a self-signed certificate."""
    log = tmp_path_factory.mktemp("webhook") / "log"
    name = f"test-{secrets.token_hex(4)}"
    flags = ["--kubeconfig", str(cluster.kubeconfig), "--address", "127.0.0.1", "--port", "0", "--name", name]
    async with programs.hansa("webhook", *flags, log=log) as program:
        await _installed(kube, name)
        yield program
        await kube("delete", configuration.RESOURCE.plural, name)
        assert await program.stop() == 0


async def _installed(kube, name):
    async def look():
        return await kube("get", configuration.RESOURCE.plural, name)

    await eventually(look)


def pod(name, *, annotations=None, labels=None, **spec):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations or {}, "labels": labels or {}},
        "spec": {"containers": [{"name": "c", "image": "example.com/c:1"}], "schedulingGates": HOLD, **spec},
    }


async def created(kube, namespace, made):
    await kube("-n", namespace, "create", "-f", "-", stdin=json.dumps(made))
    return await kube.get("-n", namespace, "pod", made["metadata"]["name"])


async def test_the_annotation_is_the_one_of_tensile_kube(kube, namespace, webhook):
    shown = await created(kube, namespace, pod("p", tolerations=json.loads(SEED)["tolerations"]))
    assert shown["metadata"]["annotations"] == {"clusterSelector": SEED}


async def test_constraints_on_lower_nodes_move_and_those_on_virtual_nodes_stay(kube, namespace, webhook):
    shown = await created(kube, namespace, pod("p", nodeSelector={"disk": "ssd", "clusterID": "hamburg"}))
    assert shown["spec"]["nodeSelector"] == {"clusterID": "hamburg"}
    assert all("tolerationSeconds" not in one for one in shown["spec"]["tolerations"])
    annotated = json.loads(shown["metadata"]["annotations"]["clusterSelector"])
    assert annotated["nodeSelector"] == {"disk": "ssd"}
    assert {one["tolerationSeconds"] for one in annotated["tolerations"]} == {300}, "as the API server defaulted them"


async def test_a_pod_that_is_created_again_from_its_own_manifest_is_the_same(kube, namespace, webhook):
    first = await created(kube, namespace, pod("p", nodeSelector={"disk": "ssd"}))
    await kube("-n", namespace, "delete", "pod", "p", "--force", "--grace-period", "0")
    again = {**first, "metadata": {key: first["metadata"][key] for key in ("name", "annotations")}}
    second = await created(kube, namespace, again)
    assert second["spec"] == first["spec"]
    assert second["metadata"]["annotations"] == first["metadata"]["annotations"]


async def test_a_pod_requires_the_node_of_its_claim(kube, namespace, webhook, cluster):
    node = f"virtual-{secrets.token_hex(3)}"
    labels = {"type": "virtual-kubelet", "kubernetes.io/hostname": node}
    await kube.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": labels}})
    await kube("-n", namespace, "apply", "-f", "-", stdin=json.dumps(_claim(node)))
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    made = pod("p", volumes=volumes)

    async def pinned():
        await kube("-n", namespace, "delete", "pod", "p", "--ignore-not-found", "--force", "--grace-period", "0")
        shown = await created(kube, namespace, made)
        return shown["spec"].get("nodeSelector") == {"kubernetes.io/hostname": node}

    await eventually(pinned)
    await kube("delete", "node", node)


def _claim(node):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "annotations": {"volume.kubernetes.io/selected-node": node}},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "none",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


async def test_system_pods_and_those_that_opted_out_are_left_alone(kube, namespace, webhook):
    selected = {"nodeSelector": {"disk": "ssd"}}
    out = await created(kube, namespace, pod("out", labels={"hansa.dev/webhook": "off"}, **selected))
    name = f"system-{secrets.token_hex(3)}"
    system = await created(kube, "kube-system", pod(name, **selected))
    await kube("-n", "kube-system", "delete", "pod", name, "--force", "--grace-period", "0")
    await kube("label", "namespace", namespace, "hansa.dev/webhook=off")
    whole = await created(kube, namespace, pod("whole", **selected))
    for one in (out, system, whole):
        assert one["spec"]["nodeSelector"] == {"disk": "ssd"}
        assert "clusterSelector" not in one["metadata"].get("annotations", {})


async def test_an_invalid_pod_is_denied_with_field_and_value(kube, namespace, webhook):
    denied = 'admission webhook "cluster-selector.hansa.dev" denied the request: '
    with pytest.raises(Refused, match=rf'{denied}metadata.annotations\[clusterSelector\]: Invalid value: "yes"'):
        await created(kube, namespace, pod("p", annotations={"clusterSelector": "yes"}))
    with pytest.raises(Refused, match='spec.nodeSelector: Invalid value: {"a b":"c"}: '):
        await created(kube, namespace, pod("p", nodeSelector={"a b": "c"}))


async def test_a_given_certificate_serves_and_may_be_renewed_while_it_runs(cluster, kube, namespace, tmp_path):
    files = {name: tmp_path / name for name in ("tls.crt", "tls.key", "ca.crt")}

    def renew(ca):
        made = certificates.issue(ca, Subject("webhook", names=("127.0.0.1",)), datetime.datetime.now(datetime.UTC))
        files["tls.key"].write_bytes(made.key)
        files["tls.crt"].write_bytes(made.certificate)

    first, second = (certificates.authority(f"ca-{n}", datetime.datetime.now(datetime.UTC)) for n in range(2))
    renew(first)
    files["ca.crt"].write_bytes(first.certificate)
    name = f"test-{secrets.token_hex(4)}"
    flags = ["--kubeconfig", str(cluster.kubeconfig), "--address", "127.0.0.1", "--port", "0", "--name", name]
    pair = ["--tlscert", str(files["tls.crt"]), "--tlskey", str(files["tls.key"]), "--ca-bundle", str(files["ca.crt"])]
    async with programs.hansa("webhook", *flags, *pair, log=tmp_path / "log"):
        await _installed(kube, name)
        try:
            assert (await created(kube, namespace, pod("one", nodeSelector={"a": "b"})))["metadata"]["annotations"]
            renew(second)
            bundle = base64.b64encode(second.certificate).decode()
            patch = [{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}]
            await kube("patch", configuration.RESOURCE.plural, name, "--type", "json", "-p", json.dumps(patch))

            async def trusted():
                made = await created(kube, namespace, pod(f"p-{secrets.token_hex(3)}", nodeSelector={"a": "b"}))
                return made["metadata"]["annotations"]

            await eventually(trusted)
        finally:
            await kube("delete", configuration.RESOURCE.plural, name)


async def test_replicas_share_a_certificate_and_leave_with_their_owner(cluster, kube, namespace, tmp_path):
    name, (first, second) = f"test-{secrets.token_hex(4)}", ports.choose(2, taken=(), seed=str(tmp_path))
    await kube("create", "clusterrole", name, "--verb=get", "--resource=pods")
    where = ("--kubeconfig", str(cluster.kubeconfig), "--address", "127.0.0.1", "--name", name, "--owner", name)
    shared = (*where, "--cert-secret", f"{namespace}/certificate")
    async with (
        programs.hansa("webhook", *shared, "--port", str(first), log=tmp_path / "first.log"),
        programs.hansa("webhook", *shared, "--port", str(second), log=tmp_path / "second.log"),
    ):
        await _installed(kube, name)

        async def serve_the_same():
            served = {
                await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", one)) for one in (first, second)
            }
            stored = (await kube.get("-n", namespace, "secret", "certificate"))["data"]
            assert served == {base64.b64decode(stored["tls.crt"]).decode()}
            [found] = (await kube.get(configuration.RESOURCE.plural, name))["webhooks"]
            assert found["clientConfig"]["caBundle"] == stored["ca.crt"]
            return True

        await eventually(serve_the_same, within=60)
        await created(kube, namespace, pod("p", nodeSelector={"disk": "ssd"}))
    await kube("delete", "clusterrole", name)

    async def is_gone():
        return await kube("get", configuration.RESOURCE.plural, name, "--ignore-not-found") == ""

    await eventually(is_gone, within=60)


async def test_clients_need_a_certificate_also_with_one_that_replicas_share(cluster, namespace, tmp_path):
    [port] = ports.choose(1, taken=(), seed=str(tmp_path))
    ca = tmp_path / "ca.crt"
    ca.write_bytes(certificates.authority("clients", datetime.datetime.now(datetime.UTC)).certificate)
    where = ("--kubeconfig", str(cluster.kubeconfig), "--address", "127.0.0.1", "--port", str(port), "--install=false")
    anonymous = ssl.create_default_context()
    anonymous.check_hostname, anonymous.verify_mode = False, ssl.CERT_NONE

    async def is_refused():
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=anonymous)
        try:
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: any\r\n\r\n")
            return not await reader.read(1)
        except ssl.SSLError as error:  # with TLS 1.3 it comes after the handshake
            return "certificate required" in str(error).lower().replace("_", " ")
        finally:
            writer.close()

    flags = ("--CA", str(ca), "--cert-secret", f"{namespace}/certificate")
    async with programs.hansa("webhook", *where, *flags, log=tmp_path / "log"):
        await eventually(is_refused, within=60)


async def test_a_configuration_that_was_changed_or_deleted_is_written_again(webhook, kube):
    kind = configuration.RESOURCE.plural
    [name] = [one for one in (await kube("get", kind, "-o", "name")).split() if "/test-" in one]
    before = (await kube.get(name))["webhooks"]
    former = [{**before[0], "clientConfig": {**before[0]["clientConfig"], "url": "https://127.0.0.1:1/mutate"}}]
    await kube("patch", name, "--type=merge", "-p", json.dumps({"webhooks": former}))

    async def restored():
        assert (await kube.get(name))["webhooks"] == before
        return True

    await eventually(restored, within=60)
    await kube("delete", name)
    await eventually(lambda: kube("get", name), within=60)
    assert (await kube.get(name))["webhooks"] == before
