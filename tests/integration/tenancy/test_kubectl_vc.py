"""`kubectl vc` with the real kubectl and a real API server; the test plays the manager."""

import http.server
import os
import secrets
import signal
import threading
from pathlib import Path

import pytest
import yaml

from eventually import eventually
from hansa.kube import errors, resources
from hansa.kube.objects import Object
from hansa.programs import components
from hansa.tenancy import api
from kubectl_vc import KubectlVc, Manager, cluster_of, line
from programs import Kubectl, Refused
from virtual_clusters import virtual_cluster


@pytest.fixture
def vc(kubectl, cluster, tmp_path):
    return KubectlVc(kubectl, cluster.kubeconfig, folder=tmp_path)


@pytest.fixture
async def manager(meta, home):
    played = Manager(meta, home)
    yield played
    await played.clean()


@pytest.fixture
def manifest(home, tmp_path):
    """A VirtualCluster in a file."""
    path = tmp_path / "vc.yaml"
    path.write_text(yaml.safe_dump(virtual_cluster("one", home).to_dict()))
    return str(path)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "vc-1.kubeconfig"


async def is_there(manager, name):
    try:
        return await manager.get(name)
    except errors.NotFound:
        return None


async def served(manager, cluster, name="one"):
    """Bring a tenant up whose control plane is the cluster itself."""
    await eventually(lambda: is_there(manager, name))
    root = await manager.root(name, cluster.kubeconfig.read_bytes())
    await manager.report(name, "Running", "tenant control plane is running")
    return root


async def test_create_prints_its_progress_and_writes_a_kubeconfig_that_works(
    vc, manager, manifest, out, cluster, kubectl
):
    process = await vc.start("create", "-f", manifest, "-o", str(out))
    await eventually(lambda: is_there(manager, "one"))
    await manager.report("one", "Pending", "etcd is not ready: 0 of 1 pods are ready")
    await line(process, lambda text: text == "etcd is not ready: 0 of 1 pods are ready\n")
    assert not out.exists()
    await served(manager, cluster)
    _, output = await process.communicate()
    assert process.returncode == 0
    assert f"{out} written, for server {cluster.server}" in output.decode()
    assert cluster_of(out)["server"] == cluster.server
    assert "namespace/kube-system" in await Kubectl(kubectl, out)("get", "ns", "-o", "name")


async def test_create_prints_when_each_stateful_set_is_ready(vc, manager, manifest, out, cluster, meta):
    process = await vc.start("create", "-f", manifest, "-o", str(out))
    await eventually(lambda: is_there(manager, "one"))
    root = await manager.root("one", cluster.kubeconfig.read_bytes())
    await manager.report("one", "Pending", "etcd is not ready")
    labels = {"app": "etcd"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "etcd", "image": "etcd"}]}}
    spec = {"serviceName": "etcd", "selector": {"matchLabels": labels}, "template": template}
    await manager.make(resources.STATEFUL_SETS, "apps/v1", {"name": "etcd", "namespace": root}, spec=spec)
    await line(process, lambda text: text == "etcd is ready\n", within=60)
    await manager.report("one", "Running")
    await process.communicate()
    assert process.returncode == 0


async def test_create_takes_a_url_and_standard_input(vc, manager, manifest, out, cluster, home, tmp_path):
    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(tmp_path))

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        process = await vc.start("create", "-f", f"{url}/vc.yaml", "-o", str(out))
        await served(manager, cluster)
        await process.communicate()
        assert process.returncode == 0
        with pytest.raises(Refused, match=f"cannot fetch {url}/other.yaml: the server answered 404"):
            await vc("create", "-f", f"{url}/other.yaml", "-o", str(out))
        server.shutdown()
    out.unlink()
    await vc("create", "-f", "-", "-o", str(out), stdin=Path(manifest).read_text())
    assert out.exists()


async def test_create_again_waits_for_the_same_and_refuses_another(vc, manager, manifest, out, cluster, tmp_path, home):
    await manager._client.create(api.VIRTUAL_CLUSTERS, virtual_cluster("one", home))
    await served(manager, cluster)
    assert f"VirtualCluster {home}/one exists already" in await vc("create", "-f", manifest, "-o", str(out))
    assert cluster_of(out)["server"] == cluster.server
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump(virtual_cluster("one", home, clusterVersionName="cv-sample-lb").to_dict()))
    with pytest.raises(Refused, match=f"{home}/one exists already with another clusterVersionName"):
        await vc("create", "-f", str(other), "-o", str(out))
    other.write_text(yaml.safe_dump(virtual_cluster("one", home, serviceCidr="10.99.0.0/16").to_dict()))
    with pytest.raises(Refused, match=f"{home}/one exists already with another serviceCidr"):
        await vc("create", "-f", str(other), "-o", str(out))


async def test_create_refuses_an_unknown_version_before_anything_is_made(vc, manager, out, home, tmp_path):
    path = tmp_path / "vc.yaml"
    path.write_text(yaml.safe_dump(virtual_cluster("one", home, clusterVersionName="cv-nowhere").to_dict()))
    with pytest.raises(Refused, match='ClusterVersion "cv-nowhere" not found; existing: .*cv-sample-lb, cv-sample-np'):
        await vc("create", "-f", str(path), "-o", str(out))
    assert await is_there(manager, "one") is None


async def test_create_refuses_a_place_that_it_cannot_write_to_before_anything_is_made(vc, manager, manifest, tmp_path):
    with pytest.raises(Refused, match=f"{tmp_path}/nowhere is not a writable folder"):
        await vc("create", "-f", manifest, "-o", str(tmp_path / "nowhere" / "out"))
    assert await is_there(manager, "one") is None


async def test_create_refuses_one_that_is_being_deleted(vc, meta, home, manifest, out):
    held = virtual_cluster("one", home).with_metadata(finalizers=["example.com/hold"])
    await meta.create(api.VIRTUAL_CLUSTERS, held)
    await meta.delete(api.VIRTUAL_CLUSTERS, "one", namespace=home)
    with pytest.raises(Refused, match=f"VirtualCluster {home}/one is being deleted"):
        await vc("create", "-f", manifest, "-o", str(out))
    await meta.patch(api.VIRTUAL_CLUSTERS, "one", {"metadata": {"finalizers": None}}, namespace=home)


async def test_a_timeout_is_reported_with_the_message_of_the_condition(vc, manager, manifest, out):
    process = await vc.start("create", "-f", manifest, "-o", str(out), "--timeout", "3s")
    await eventually(lambda: is_there(manager, "one"))
    await manager.report("one", "Pending", "the image of etcd cannot be pulled")
    _, output = await process.communicate()
    assert process.returncode == 1
    assert "is not running after 3 s: the image of etcd cannot be pulled. It is still being created" in output.decode()
    assert not out.exists()


async def test_without_a_manager_the_timeout_names_it(vc, manifest, out, meta):
    with pytest.raises(Refused, match="it has no status; check that `hansa vc-manager` is running"):
        await vc("create", "-f", manifest, "-o", str(out), "--timeout", "1s")


async def test_ctrl_c_leaves_no_half_of_anything(vc, manager, manifest, out, cluster):
    process = await vc.start("create", "-f", manifest, "-o", str(out))
    await line(process, lambda text: "/one created" in text)
    os.killpg(process.pid, signal.SIGINT)
    _, output = await process.communicate()
    assert process.returncode != 0
    assert "Traceback" not in output.decode()
    assert "is still being created; run the same command again to wait for it" in output.decode()
    assert [path.name for path in out.parent.iterdir() if "kubeconfig" in path.name] == []
    await served(manager, cluster)
    await vc("create", "-f", manifest, "-o", str(out))
    assert cluster_of(out)["server"] == cluster.server


@pytest.fixture
async def tenant(meta, manager, cluster, home):
    """The root namespace of a tenant that runs."""
    await meta.create(api.VIRTUAL_CLUSTERS, virtual_cluster("one", home))
    return await served(manager, cluster)


async def service(manager, root, **spec):
    ports = [{"name": "api", "port": spec.pop("port", 6443)}]
    metadata = {"name": "apiserver-svc", "namespace": root}
    return await manager.make(resources.SERVICES, "v1", metadata, spec={"ports": ports, **spec})


@pytest.fixture
async def node(meta):
    """A node with an address, where no pod is put."""
    metadata = {"name": f"a-{secrets.token_hex(2)}"}
    spec = {"unschedulable": True}
    made = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec}
    await meta.create(resources.NODES, Object.of(made))
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2099-01-01T00:00:00Z"}
    status = {"conditions": [ready], "addresses": [{"type": "InternalIP", "address": "192.0.2.7"}]}
    await meta.patch(resources.NODES, metadata["name"], {"status": status}, subresource="status")
    yield "192.0.2.7"
    await meta.delete(resources.NODES, metadata["name"])


async def test_a_node_port_is_reached_at_a_node(vc, manager, tenant, node, out, home):
    made = await service(manager, tenant, type="NodePort")
    await vc("kubeconfig", "one", "-n", home, "-o", str(out))
    found = cluster_of(out)
    assert found["server"] == f"https://{node}:{made.spec['ports'][0]['nodePort']}"
    assert found["tls-server-name"] == "kubernetes"


async def test_a_cluster_ip_is_reached_at_that_address(vc, manager, tenant, out, home):
    made = await service(manager, tenant)
    await vc("kubeconfig", "one", "-n", home, "-o", str(out))
    assert cluster_of(out)["server"] == f"https://{made.spec['clusterIP']}:6443"


async def test_a_load_balancers_address_is_waited_for_and_verified(
    vc, manager, tenant, out, home, cluster, kubectl, meta
):
    port = cluster.record.ports[components.APISERVER]
    await service(manager, tenant, type="LoadBalancer", port=port)
    process = await vc.start("kubeconfig", f"{home}/one", "-o", str(out))
    status = {"status": {"loadBalancer": {"ingress": [{"ip": "127.0.0.1"}]}}}
    await meta.patch(resources.SERVICES, "apiserver-svc", status, namespace=tenant, subresource="status")
    _, output = await process.communicate()
    assert process.returncode == 0, output.decode()
    assert cluster_of(out) | {"certificate-authority-data": ""} == {
        "server": f"https://127.0.0.1:{port}",
        "certificate-authority-data": "",
        "tls-server-name": "kubernetes",
    }
    assert "namespace/default" in await Kubectl(kubectl, out)("get", "ns", "-o", "name")


async def test_a_load_balancer_that_never_gets_an_address_is_reported(vc, manager, tenant, home):
    await service(manager, tenant, type="LoadBalancer")
    with pytest.raises(Refused, match=f"Service {tenant}/apiserver-svc has no load balancer address after 1 s"):
        await vc("kubeconfig", f"{home}/one", "--timeout", "1s")


async def test_a_kubeconfig_is_printed_as_yaml(vc, tenant, home, cluster):
    process = await vc.start("kubeconfig", "one", "--namespace", home)
    printed, _ = await process.communicate()
    assert yaml.safe_load(printed) == yaml.safe_load(cluster.kubeconfig.read_text())


async def test_a_tenant_that_does_not_run_has_no_kubeconfig(vc, manager, tenant, home):
    await manager.report("one", "Pending", "apiserver is not ready")
    with pytest.raises(Refused, match=f"VirtualCluster {home}/one is not running: apiserver is not ready"):
        await vc("kubeconfig", "one", "-n", home)


async def test_list_and_get_show_what_there_is(vc, tenant, home):
    lines = (await vc("list", "-n", home)).splitlines()
    assert lines[1].split()[:5] == [home, "one", "Running", "cv-sample-np", tenant]
    assert home in await vc("list", "-A")
    output = await vc("get", "one", "-n", home)
    assert f"Root namespace:   {tenant}" in output
    assert "Ready: True, Reported: tenant control plane is running" in output
    with pytest.raises(Refused, match="not found"):
        await vc("get", "nobody", "-n", home)


async def test_exec_runs_a_command_with_the_tenants_kubeconfig_and_removes_it(vc, tenant, home, kubectl, tmp_path):
    names = await vc("exec", f"{home}/one", "--", str(kubectl), "get", "ns", "-o", "name")
    assert "namespace/kube-system" in names
    where = (await vc("exec", f"{home}/one", "--", "sh", "-c", "echo $KUBECONFIG")).strip()
    assert Path(where).parent == tmp_path / ".kube" / "vc"
    assert tenant in where
    assert not Path(where).exists()


async def test_exec_ends_with_the_commands_exit_code(vc, tenant, home):
    process = await vc.start("exec", f"{home}/one", "--", "sh", "-c", "exit 7")
    await process.communicate()
    assert process.returncode == 7


async def test_ctrl_c_in_exec_is_the_commands(vc, tenant, home):
    script = 'trap "echo caught; exit 3" INT; echo up; while :; do sleep 0.1; done'
    process = await vc.start("exec", f"{home}/one", "--", "sh", "-c", script)
    await eventually(process.stdout.readline)
    os.killpg(process.pid, signal.SIGINT)
    out, _ = await process.communicate()
    assert (process.returncode, out) == (3, b"caught\n")


async def test_delete_waits_until_the_tenant_is_gone(vc, manager, tenant, home, meta):
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    await meta.patch(api.VIRTUAL_CLUSTERS, "one", held, namespace=home)
    process = await vc.start("delete", "one", "-n", home)

    async def is_deleting():
        return (await manager.get("one")).is_deleting

    await eventually(is_deleting)
    assert process.returncode is None
    await meta.patch(api.VIRTUAL_CLUSTERS, "one", {"metadata": {"finalizers": None}}, namespace=home)
    _, output = await process.communicate()
    assert (process.returncode, output.decode().splitlines()[-1]) == (0, f"VirtualCluster {home}/one deleted")


async def test_upgrade_names_the_version_and_waits_until_it_runs(vc, manager, tenant, home):
    process = await vc.start("upgrade", "one", "-n", home, "--cluster-version", "cv-sample-lb")

    async def is_asked():
        return (await manager.get("one")).spec.cluster_version_name == "cv-sample-lb"

    await eventually(is_asked)
    await manager.report("one", "Updating", "apiserver is not ready: 0 of 1 pods are updated")
    await line(process, lambda text: text == "apiserver is not ready: 0 of 1 pods are updated\n")
    await manager.report("one", "Running")
    _, output = await process.communicate()
    assert (process.returncode, output.decode()) == (0, f"VirtualCluster {home}/one runs ClusterVersion cv-sample-lb\n")


async def test_a_cluster_without_the_definitions_is_reported(kubectl, fresh_cluster, tmp_path):
    plain = await fresh_cluster()
    with pytest.raises(Refused, match="this cluster does not serve VirtualClusters: run `hansa vc-manager`"):
        await KubectlVc(kubectl, plain.kubeconfig, folder=tmp_path)("list")


async def test_an_unknown_context_is_reported(vc, meta):
    with pytest.raises(Refused, match='there is no context "nowhere"'):
        await vc("list", "--context", "nowhere")
