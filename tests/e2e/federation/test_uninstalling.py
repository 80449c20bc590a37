"""DaemonSets stay off virtual nodes, and nothing of a federation is left after it was uninstalled."""

import json

import programs
from eventually import eventually
from federation import a_deployment, a_secret, a_target, elected
from hansa.model import keys
from league import PATIENCE

COPIED = ("pods", "services", "endpointslices", "configmaps", "secrets", "ingresses", "serviceaccounts")
FLAGS = ("--pod-networks", "10.0.0.0/8", "--follow-claims", "--follow-service-accounts")


def a_daemon_set(name):
    spec = {"containers": [{"name": "main", "image": "example.com/app:1"}], "tolerations": [{"operator": "Exists"}]}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    selector = {"matchLabels": {"app": name}}
    spec = {"selector": selector, "template": template}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name}, "spec": spec}


async def test_a_daemon_set_that_tolerates_everything_runs_on_real_nodes_only(federation, namespace, nodes, pods):
    await pods.apply(a_daemon_set("logs"))

    async def running():
        found = await pods.east.all("pods", namespace=namespace, labels="app=logs")
        shown = {one["spec"].get("nodeName"): one["status"]["phase"] for one in found}
        assert shown == {f"east-{n}": "Running" for n in range(3)}
        return True

    await eventually(running, within=PATIENCE)


async def test_an_operator_that_tolerates_everything_runs_on_real_nodes_only(federation, namespace, nodes, pods):
    made = a_deployment("operator", 6, tolerations=[{"operator": "Exists"}])
    del made["spec"]["template"]["metadata"]["annotations"]
    await pods.apply(made)
    await pods.rolled_out("operator")
    found = await pods.east.all("pods", namespace=namespace, labels="app=operator")
    assert {one["spec"]["nodeName"] for one in found} <= {f"east-{n}" for n in range(3)}


async def test_a_pod_on_a_virtual_node_that_is_not_elected_says_so_and_can_be_deleted(namespace, nodes, pods):
    made = elected("stray", nodeName=nodes["west"])
    del made["metadata"]["annotations"]
    await pods.apply(made)

    async def warned():
        fields = "involvedObject.name=stray,reason=NotElected"
        found = await pods.east.kubectl.get("-n", namespace, "events", "--field-selector", fields)
        return [one for one in found["items"] if nodes["west"] in one["message"]]

    await eventually(warned, within=PATIENCE)
    other = elected(namespace, nodeName=nodes["west"], schedulerName=keys.PROXY_SCHEDULER)  # in another namespace
    await pods.east.kubectl("-n", "default", "apply", "-f", "-", stdin=json.dumps(other))
    await pods.delete("target", "west")
    await pods.gone("target", "west", namespace=namespace)
    await pods.delete("pod", "stray")
    await pods.gone("pod", "stray", namespace=namespace)
    await pods.gone("pod", namespace, namespace="default")  # its node is gone


async def a_dead_target(federation, namespace, pods):
    """A target that was reached once and is not any more."""
    config = pods.west.cluster.kubeconfig.read_text()
    await pods.apply(a_secret("dead", config, namespace), a_target("dead", namespace))
    await federation.joined(pods.east, "dead", namespace)
    server = next(line.split("server: ")[1].strip() for line in config.splitlines() if "server: " in line)
    dead = config.replace(server, "https://127.0.0.1:1")
    await pods.apply(a_secret("dead", dead, namespace))
    await federation.ready(pods.east, "target", "dead", namespace=namespace, status="False")


async def test_uninstall_leaves_nothing_behind_also_with_a_dead_target(federation, namespace, nodes, pods, tmp_path):
    await federation.agents.pop("east").stop()
    await federation.start("east", flags=FLAGS)
    await a_dead_target(federation, namespace, pods)
    await pods.apply(*objects())
    await pods.rolled_out("web")
    await eventually(lambda: has_slices(pods), within=PATIENCE)
    await eventually(lambda: pods.west.find("pvc", "data", namespace=namespace), within=PATIENCE)
    await federation.agents.pop("east").stop()
    config = str(pods.east.cluster.kubeconfig)
    async with programs.hansa("agent", "--kubeconfig", config, "--uninstall", log=tmp_path / "log") as program:
        assert await program.ended(within=200) == 0
    await pods.rolled_out("web")
    plain = await pods.east.all("pods", namespace=namespace, labels="app=web")
    assert {one["spec"]["nodeName"] for one in plain} <= {f"east-{n}" for n in range(3)}
    for kind in COPIED:
        await eventually(lambda kind=kind: nothing_is_left(pods, kind), within=PATIENCE)
    assert await pods.west.find("pvc", "data", namespace=namespace) is not None, "it has data"
    found = await pods.east.find("service", "web", namespace=namespace)
    assert found["spec"]["selector"] == {"app": "web"}
    east = pods.east.kubectl
    assert await east("get", "nodes", "-l", f"{keys.PROVIDER_TAINT}=admiralty", "-o", "name") == ""
    for kind in ("crd", "clusterroles", "validatingadmissionpolicies", "mutatingwebhookconfigurations"):
        names = (await east("get", kind, "-o", "name")).split()
        assert [name for name in names if "multicluster-scheduler" in name or "admiralty" in name] == [], kind


def objects():
    """A Deployment in both targets, a Service, and what the pods refer to."""
    service = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    volumes = [{"name": "c", "configMap": {"name": "c"}}]
    disk = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]  # which no cluster has a volume for
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"k": "v"}}
    yield {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": service}
    yield {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": claim}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    yield a_deployment("web", 6, volumes=volumes, serviceAccountName="robot")
    yield a_deployment("db", 1, volumes=disk, nodeSelector={"kubernetes.io/hostname": "west-0"})


async def nothing_is_left(pods, kind):
    """No mark of the federation in the source, and no copy in its target, which stays one of other sources."""
    here, copies = await pods.east.all(kind), await pods.west.all(kind, labels=keys.UPPER)
    left = [one["metadata"] for one in [*filter(is_left, here), *copies]]
    assert left == [], left
    return True


def is_left(obj):
    """Whether an object has marks of the federation."""
    metadata = obj["metadata"]
    marks = [*metadata.get("labels", {}), *metadata.get("annotations", {}), *metadata.get("finalizers", ())]
    own = {keys.ELECT}  # which users set
    return [one for one in marks if one.startswith((f"{keys.FEDERATION}/", "hansa.dev/")) and one not in own]


async def has_slices(pods):
    return await pods.east.all("endpointslices", namespace=pods.namespace, labels=keys.ENDPOINTS_OF)
