"""What `hansa explain` says and `hansa whatif` forecasts for a federation is true."""

import random

import pytest

import programs
import soaking
from eventually import eventually
from federation import a_deployment, elected
from hansa.model import keys
from league import fresh_name
from questions import ask, by_cluster, changed, fates

PATIENCE = 90.0
REGION = "topology.kubernetes.io/region"
SOON = [
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}
    for name in ("not-ready", "unreachable")
]


def source(pods):
    return ("--kubeconfig", str(pods.east.cluster.kubeconfig))


async def explain(pods, name):
    return await ask("explain", "pod", f"{pods.namespace}/{name}", *source(pods))


async def whatif(pods, *words):
    return fates(await ask("whatif", *words, *source(pods)), pods.namespace)


async def living(pods):
    found = await pods.east.all("pods", namespace=pods.namespace)
    return [
        one
        for one in found
        if "deletionTimestamp" not in one["metadata"] and keys.SOURCE_POD in one["metadata"].get("annotations", {})
    ]


async def settled(pods, wanted):
    """Wait until the living proxy pods are on these virtual nodes; "" is pending."""

    async def look():
        found = await living(pods)
        where = [one["spec"].get("nodeName", "") for one in found if one["status"].get("phase") == "Running"]
        where += [""] * (len(found) - len(where))
        assert sorted(where) == sorted(wanted), where
        return {one["metadata"]["name"]: one for one in found}

    return await eventually(look, within=PATIENCE)


async def test_a_pod_is_explained_with_its_targets_and_runs_with_what_they_name(federation, namespace, nodes, pods):
    await pods.apply(elected("large", cpu="9", nodeSelector={REGION: "mars"}))
    await pods.event("large", nodes["east"])
    explained = await explain(pods, "large")
    assert (explained["mode"], explained["node"], explained["cluster"]) == ("federation", "", "")
    answers = by_cluster(explained)
    west = answers[f"{namespace}/west"]
    assert west["node"] == nodes["west"]
    assert west["wouldFitIf"].startswith(
        "would fit if it had no nodeSelector and no required node affinity and node west-"
    )
    await pods.east.kubectl("-n", namespace, "delete", "pod", "large")
    await pods.apply(changed(elected("large", cpu="9", nodeSelector={REGION: "mars"}), west["changes"]))
    running = await pods.running("large")
    explained = await explain(pods, "large")
    target = f"{namespace}/{'west' if running['spec']['nodeName'] == nodes['west'] else 'east'}"
    assert (explained["node"], explained["cluster"]) == (running["spec"]["nodeName"], target)
    assert explained["decision"].startswith(f"hansa agent chose {target}")
    assert f"in {target} is Running on node" in explained["below"][0]
    assert by_cluster(explained)[target]["fits"], "without its own delegate"


async def test_a_pod_is_explained_before_it_is_created(federation, namespace, nodes, pods, tmp_path):
    file = tmp_path / "new.yaml"
    described = elected("new", cpu="7")
    described["metadata"]["namespace"] = namespace
    file.write_text(str(described))
    explained = await ask("explain", "pod", "--pod-file", str(file), *source(pods))
    assert explained["placed"] == "does not exist yet"
    assert {one["cluster"]: one["fits"] for one in explained["answers"]} == {
        f"{namespace}/east": True,
        f"{namespace}/west": True,
    }
    described["metadata"]["namespace"] = "default"
    file.write_text(str(described))
    with pytest.raises(programs.Refused, match="lacks the label multicluster-scheduler=enabled"):
        await ask("explain", "pod", "--pod-file", str(file), *source(pods))


async def test_what_a_target_said_is_explained(federation, namespace, nodes, pods):
    await pods.west.kubectl("-n", namespace, "create", "quota", "guests", "--hard=pods=0")
    await pods.apply(elected("late", nodeSelector={"kubernetes.io/hostname": "west-0"}))
    await pods.event("late", "exceeded quota: guests")
    explained = await explain(pods, "late")
    assert any("exceeded quota: guests" in line for line in (*explained["below"], *explained["events"])), explained


async def test_a_lost_target_moves_what_was_forecast(federation, namespace, nodes, pods):
    await pods.apply(a_deployment("web", 5, cpu="4", tolerations=SOON))
    await pods.rolled_out("web")
    before = {one["metadata"]["name"]: one["spec"]["nodeName"] for one in await living(pods)}
    found = await whatif(pods, "--lose", f"{namespace}/west")
    assert set(found) == {name for name, node in before.items() if node == nodes["west"]}
    moves = [name for name, fate in found.items() if fate == ("moves", f"{namespace}/east")]
    pends = [name for name, fate in found.items() if fate == ("pends", "")]
    assert len(moves) + len(pends) == len(found)
    stays = len(before) - len(found)
    with pods.west.frozen():
        unread = await ask("whatif", "--add-node", f"{namespace}/east=cpu=1", *source(pods))
        assert f"{namespace}/west" in unread["unknown"], "also the Targets of namespaces that are being deleted are"
        assert {one.partition("/")[2] for one in unread["unknown"]} == {"west"}
        await settled(pods, [nodes["east"]] * (stays + len(moves)) + [""] * len(pends))
    await pods.delete("deployment", "web")
    await pods.have_counts(0, 0)


async def test_a_drained_node_of_a_target_and_a_new_one_do_what_was_forecast(federation, namespace, nodes, pods):
    await pods.apply(a_deployment("web", 6, cpu="5"))
    await pods.rolled_out("web")
    delegates = [one for one in await federation.delegates(pods.west, namespace) if one["spec"].get("nodeName")]
    node = delegates[0]["spec"]["nodeName"]
    victim = delegates[0]["metadata"]["labels"][keys.PARENT_UID]
    [name] = [one["metadata"]["name"] for one in await living(pods) if one["metadata"]["uid"] == victim]
    assert await whatif(pods, "--drain", f"{namespace}/west/{node}") == {name: ("pends", "")}
    both = ("--drain", f"{namespace}/west/{node}", "--add-node", f"{namespace}/east=cpu=6,memory=4Gi")
    assert await whatif(pods, *both) == {name: ("moves", f"{namespace}/east")}
    await pods.west.kubectl("drain", node, "--force", "--ignore-daemonsets", "--timeout=60s")
    try:
        await settled(pods, [nodes["east"]] * 3 + [nodes["west"]] * 2 + [""])
        [pending] = [one for one in await living(pods) if not one["spec"].get("nodeName")]
        forecast = await whatif(pods, "--add-node", f"{namespace}/west=cpu=6,memory=4Gi")
        assert forecast == {pending["metadata"]["name"]: ("starts", f"{namespace}/west")}
    finally:
        await pods.west.kubectl("uncordon", node)
    await pods.rolled_out("web")
    await pods.delete("deployment", "web")
    await pods.have_counts(0, 0)


async def test_mistakes_are_one_sentence(federation, namespace, nodes, pods):
    for words, message in (
        (("--lose", "mars"), "there is no target mars; known: "),
        (("--drain", f"{namespace}/west/n9"), "has no node n9 in its ClusterSummary"),
        (("--quota", "shop=cpu=1"), "--quota is for namespaces in a pool"),
    ):
        with pytest.raises(programs.Refused, match=message):
            await whatif(pods, *words)


@pytest.mark.soak
@pytest.mark.timeout(7200)
async def test_what_explanations_name_makes_hundreds_of_random_pending_pods_run(federation, namespace, nodes, pods):
    for seed in soaking.seeds():
        rng = random.Random(seed)
        for _ in range(200):
            name = fresh_name("p")
            described = elected(name, cpu=rng.choice(("100m", "9", "12")))
            if rng.random() < 0.5 or "100m" in str(described):
                described["spec"]["nodeSelector"] = {REGION: "mars"}
            await pods.apply(described)
            await pods.event(name, nodes["west"])
            helped = [one for one in (await explain(pods, name))["answers"] if one.get("changes")]
            await pods.east.kubectl("-n", namespace, "delete", "pod", name)
            await pods.apply(changed(described, rng.choice(helped)["changes"]))
            await pods.running(name)
            await pods.east.kubectl("-n", namespace, "delete", "pod", name)
            await pods.have_counts(0, 0)
