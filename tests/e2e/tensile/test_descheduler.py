"""The descheduler and the webhook: a pod that its cluster cannot schedule goes to another one, and none is lost."""

import contextlib
import json

from descheduling_things import full, only, refused
from eventually import eventually
from league import PATIENCE, container, deployment

BIG = {"resources": {"requests": {"cpu": "10"}}}  # nodes have 16
ROUNDS = 10


async def test_a_pod_that_its_cluster_cannot_schedule_goes_to_another(
    league, upper_namespace, descheduling, descheduler_account, tmp_path
):
    upper = league.upper
    await upper.kubectl("cordon", "vn-lubeck")
    async with full(league, "hamburg", upper_namespace):
        selected = {"nodeSelector": {"kubernetes.io/os": "linux"}}
        made = deployment("web", 1, containers=[container(**BIG)], **selected)
        await upper.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(made))
        first = await refused(league, upper_namespace, "vn-hamburg")
        await upper.kubectl("uncordon", "vn-lubeck")
        async with descheduling("--dry-run"):

            async def planned():
                text = (tmp_path / "descheduler.log").read_text()
                assert "pod would be evicted" in text
                assert first["metadata"]["name"] in text
                return True

            await eventually(planned, within=PATIENCE)
        assert (await only(league, upper_namespace))["metadata"]["uid"] == first["metadata"]["uid"]
        verbs = {one["verb"] for one in descheduler_account.requests()}
        assert verbs.isdisjoint({"create", "update", "patch", "delete"}), "a dry run writes nothing"
        async with descheduling("--leader-elect", "--leader-elect-namespace", "hansa-system"):
            second = await only(league, upper_namespace, on="vn-lubeck")
            running = await league.phase(upper_namespace, second["metadata"]["name"])
    assert running["metadata"]["annotations"]["hansa.dev/avoids"] == "vn-hamburg"
    assert running["metadata"]["annotations"]["clusterSelector"] == first["metadata"]["annotations"]["clusterSelector"]
    lower = await league.lowers["lubeck"].find("pod", second["metadata"]["name"], namespace=upper_namespace)
    assert lower["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert "affinity" not in lower["spec"]
    events = await upper.all("events", namespace=upper_namespace)
    assert [one["message"] for one in events if one["reason"] == "Descheduled"]
    await eventually(descheduler_account.ended)
    assert descheduler_account.unused() <= {("patch", "events.")}, "an Event is patched when it happens again"


async def test_a_pod_that_fits_nowhere_is_tried_again_and_again_until_there_is_room(
    league, upper_namespace, descheduling
):
    async with contextlib.AsyncExitStack() as stack:
        for name in league.lowers:
            await stack.enter_async_context(full(league, name, upper_namespace))
        selected = {"kubernetes.io/os": "linux"}
        made = deployment("web", 1, containers=[container(**BIG)], nodeSelector=selected)
        made["spec"]["template"]["metadata"]["annotations"] = {"example.com/keep": "this"}
        seen, lost = set(), []
        async with descheduling(freeze="5"):
            await league.upper.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(made))

            async def many():
                pod = await only(league, upper_namespace)
                seen.add((pod["metadata"]["uid"], pod["spec"].get("nodeName", "")))
                annotations = pod["metadata"]["annotations"]
                parked = json.loads(annotations["clusterSelector"])["nodeSelector"]
                if (annotations["example.com/keep"], parked) != ("this", selected):
                    lost.append(annotations)
                assert len({uid for uid, _ in seen}) >= ROUNDS, seen
                assert {"vn-hamburg", "vn-lubeck"} <= {node for _, node in seen}, seen
                return True

            await eventually(many, within=2 * PATIENCE)
            assert lost == []
            await stack.aclose()  # there is room now

            async def runs():
                pod = await only(league, upper_namespace)
                assert pod["status"]["phase"] == "Running", pod["status"]
                return pod

            await eventually(runs, within=PATIENCE)
