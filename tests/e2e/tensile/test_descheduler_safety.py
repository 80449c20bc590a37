"""The descheduler moves no pod that is not its to move, and loses none: budgets, protected pods, crashes, replicas."""

import contextlib
import signal

from descheduling_things import full, only, refused
from eventually import eventually
from hansa.programs import components
from league import PATIENCE, container, deployment, named, pod

BIG = {"resources": {"requests": {"cpu": "10"}}}  # nodes have 16
NOWHERE = {"nodeSelector": {"example.com/disk": "nowhere"}}  # the webhook parks it, and every lower cluster refuses it
ELECTION = ("--leader-elect", "--leader-elect-namespace", "hansa-system")


async def create(league, namespace, *objects):
    made = ({**one, "metadata": {**one["metadata"], "namespace": namespace}} for one in objects)
    await league.upper.kubectl.apply(*made, verb="create")


async def test_pods_that_are_not_its_to_move_are_safe(league, upper_namespace, descheduling, tmp_path):
    critical = deployment("critical", 1, priorityClassName="system-cluster-critical", **NOWHERE)
    keeping = deployment("keeping", 1, **NOWHERE)
    keep = {"descheduler.alpha.kubernetes.io/prefer-no-eviction": "true"}
    keeping["spec"]["template"]["metadata"]["annotations"] = keep
    too_big = container(resources={"requests": {"cpu": "17"}})  # fits the sum of the nodes, but none of them
    daemons = deployment("daemon", 1, containers=[too_big]) | {"kind": "DaemonSet"}
    del daemons["spec"]["replicas"]
    safe = [pod("bare", **NOWHERE), critical, keeping, daemons]
    await create(league, upper_namespace, *safe, deployment("moved", 1, **NOWHERE))

    async def all_refused():
        pods = await league.upper.all("pods", namespace=upper_namespace)
        assert len(pods) == 4 + len(league.lowers), named(pods)
        for one in pods:
            conditions = {each["type"]: each for each in one["status"].get("conditions") or []}
            assert conditions["PodScheduled"].get("reason") == "Unschedulable", one["metadata"]["name"]
        return pods

    before = {one["metadata"]["uid"]: one["metadata"]["name"] for one in await eventually(all_refused, within=PATIENCE)}
    async with descheduling():

        async def is_moved():
            pods = await league.upper.all("pods", namespace=upper_namespace)
            return {one["metadata"]["uid"] for one in pods if one["metadata"]["name"].startswith("moved")} - set(before)

        await eventually(is_moved, within=PATIENCE)
    after = {one["metadata"]["uid"] for one in await league.upper.all("pods", namespace=upper_namespace)}
    gone = [name for uid, name in before.items() if uid not in after]
    assert [name.partition("-")[0] for name in gone] == ["moved"], gone
    log = (tmp_path / "descheduler.log").read_text()
    assert not any(f"{upper_namespace}/{name}" in log for name in ("bare", "critical", "keeping", "daemon"))


async def test_a_budget_keeps_the_pods_that_run(league, upper_namespace, descheduling):
    async with full(league, "hamburg", upper_namespace), full(league, "lubeck", upper_namespace):
        small = {"resources": {"requests": {"cpu": "1"}}}
        await create(league, upper_namespace, deployment("web", 2, containers=[container(**small)]))
        budget = {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}
        made = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": budget}
        await create(league, upper_namespace, made)

        async def running():
            pods = await league.upper.all("pods", namespace=upper_namespace, labels="app=web")
            found = {one["metadata"]["uid"] for one in pods if one["status"]["phase"] == "Running"}
            assert len(found) >= 2, [one["status"] for one in pods]
            return found

        before = await eventually(running, within=PATIENCE)
        await create(league, upper_namespace, deployment("big", 1, containers=[container(**BIG)]))
        seen = set()
        async with descheduling(freeze="5"):

            async def moved():
                pods = await league.upper.all("pods", namespace=upper_namespace, labels="app=big")
                seen.update(one["metadata"]["uid"] for one in pods)
                assert len(seen) >= 3
                return True

            await eventually(moved, within=PATIENCE)
        assert await running() == before


async def test_a_kill_between_an_eviction_and_the_replacement_loses_no_pod(league, upper_namespace, descheduling):
    upper = league.upper
    await upper.kubectl("cordon", "vn-lubeck")
    async with full(league, "hamburg", upper_namespace):
        await create(league, upper_namespace, deployment("web", 1, containers=[container(**BIG)]))
        first = await refused(league, upper_namespace, "vn-hamburg")
        await upper.kubectl("uncordon", "vn-lubeck")
        controllers = upper.cluster.process(components.CONTROLLERS)
        controllers.signal(signal.SIGSTOP)  # no replacement yet
        try:
            async with descheduling() as program:
                await league.gone(upper, "pod", first["metadata"]["name"], namespace=upper_namespace)
                program.kill()
                await program.ended()
        finally:
            controllers.signal(signal.SIGCONT)
        second = await only(league, upper_namespace, on="vn-lubeck")
        await league.phase(upper_namespace, second["metadata"]["name"])


async def test_of_two_replicas_one_evicts_and_the_other_goes_on_when_it_is_killed(
    league, upper_namespace, descheduling, tmp_path
):
    await create(league, upper_namespace, deployment("web", 1, **NOWHERE))
    async with contextlib.AsyncExitStack() as stack:
        names = ("one", "other")
        replicas = [await stack.enter_async_context(descheduling(*ELECTION, freeze="5", name=name)) for name in names]

        def evictions(name):
            lines = (tmp_path / f"{name}.log").read_text().splitlines()
            return sum("evicting pod" in line and upper_namespace in line for line in lines)

        async def several(name):
            assert evictions(name) >= 2, (tmp_path / f"{name}.log").read_text()[-2000:]
            return True

        async def any_leads():
            return next((name for name in names if evictions(name) >= 2), None)

        leader = await eventually(any_leads, within=PATIENCE)
        [follower] = set(names) - {leader}
        assert evictions(follower) == 0
        replicas[names.index(leader)].kill()
        await eventually(lambda: several(follower), within=PATIENCE)
