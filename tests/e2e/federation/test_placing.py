"""Where delegates run: by resources, constraints, quotas and ports of nodes, and what a user sees if they can't."""

import yaml

from eventually import eventually
from federation import a_deployment, elected
from hansa.model import keys
from league import condition

PATIENCE = 90.0
REGION = "topology.kubernetes.io/region"


async def test_proxies_show_what_delegates_do(federation, namespace, nodes, pods):
    await pods.apply(a_deployment("web", 10))
    await pods.rolled_out("web")
    east, west = await federation.delegates(pods.east, namespace), await federation.delegates(pods.west, namespace)
    assert east
    assert west
    proxies = await pods.east.all("pods", namespace=namespace, labels="app=web")
    uids = [one["metadata"]["labels"][keys.PARENT_UID] for one in (*east, *west)]
    assert sorted(uids) == sorted(one["metadata"]["uid"] for one in proxies)
    for proxy in proxies:
        assert proxy["spec"]["nodeName"] in nodes.values()
        assert yaml.safe_load(proxy["metadata"]["annotations"][keys.SOURCE_POD])["spec"]["containers"]
    victim = west[0]["metadata"]
    await pods.west.kubectl("-n", namespace, "annotate", "pod", victim["name"], "example.com/seen=yes")

    async def annotated():
        found = await pods.east.all("pods", namespace=namespace, labels="app=web")
        return [one for one in found if one["metadata"]["annotations"].get("example.com/seen") == "yes"]

    assert await eventually(annotated, within=PATIENCE)
    await pods.west.kubectl("-n", namespace, "delete", "pod", victim["name"], "--wait=false")
    await eventually(lambda: lacks(pods, victim["labels"][keys.PARENT_UID]), within=PATIENCE)
    await pods.rolled_out("web")
    await pods.delete("deployment", "web")
    await pods.have_counts(0, 0)


async def lacks(pods, uid):
    return uid not in {one["metadata"]["uid"] for one in await pods.east.all("pods", namespace=pods.namespace)}


async def test_constraints_are_met_by_nodes_of_the_targets_and_a_change_moves_all_pods(
    federation, namespace, nodes, pods
):
    for one, region in ((pods.east, "us"), (pods.west, "eu")):
        await one.kubectl(
            "label", "nodes", "-l", f"{keys.PROVIDER_TAINT}!=admiralty", f"{REGION}={region}", "--overwrite"
        )
    await pods.apply(a_deployment("web", 6))
    await pods.rolled_out("web")
    await pods.apply(a_deployment("web", 6, nodeSelector={REGION: "eu"}))
    await pods.rolled_out("web")
    await pods.have_counts(0, 6)
    await pods.apply(elected("nowhere", nodeSelector={REGION: "asia"}))
    await pods.event("nowhere", nodes["east"], nodes["west"], "didn't match Pod's node affinity/selector")
    await pods.west.kubectl("label", "node", "west-0", f"{REGION}=asia", "--overwrite")
    await pods.running("nowhere", nodes["west"])
    await pods.west.kubectl("label", "node", "west-0", f"{REGION}=eu", "--overwrite")


async def test_what_a_target_refuses_runs_elsewhere_and_is_explained(federation, namespace, nodes, pods):
    await pods.west.kubectl("-n", namespace, "create", "quota", "guests", "--hard=pods=1")
    await pods.apply(a_deployment("web", 6))
    await pods.rolled_out("web")
    east, west = await pods.counts()
    assert (west <= 1, east + west) == (True, 6)
    await pods.east.kubectl("-n", namespace, "create", "quota", "guests", f"--hard=pods={6 + east + 1}")
    await pods.apply(elected("late"))  # its proxy is the last pod that east takes
    await pods.event("late", "exceeded quota: guests")
    proxy = await pods.east.find("pod", "late", namespace=namespace)
    assert condition(proxy, "PodScheduled")["status"] == "False"
    await pods.west.kubectl("-n", namespace, "delete", "quota", "guests")
    await pods.running("late")


async def test_a_delegate_that_a_scheduler_cannot_place_is_withdrawn(federation, namespace, nodes, pods):
    port = {"container": {"ports": [{"containerPort": 80, "hostPort": 8080}]}}
    await pods.apply(a_deployment("web", 6, **port))
    await pods.rolled_out("web")
    assert await pods.counts() == [3, 3]
    await pods.apply(elected("late", **port))
    await pods.event("late", "free ports")
    await pods.east.kubectl("-n", namespace, "scale", "deployment", "web", "--replicas=5")
    await pods.running("late")
    await pods.delete("deployment/web", "pod/late")
    await pods.have_counts(0, 0)
