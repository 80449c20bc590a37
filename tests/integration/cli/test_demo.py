"""`hansa demo`: the pool demo runs the commands of the seed literally, and no demo leaves anything behind."""

import os
import re
import signal

import pytest

import programs
from command_runs import hansa
from eventually import eventually
from hansa.cli.demo import burst, leftovers
from hansa.local.machines import requirements
from hansa.programs import process
from leftovers import owned_folder

pytestmark = pytest.mark.timeout(600)  # four control planes, maybe on a busy machine
WITHIN = 300.0
SEED = (
    "$ kubectl vc create -f virtualcluster_1_nodeport.yaml -o vc-1.kubeconfig",
    *("cluster-cr.yaml", "cluster-id.yaml", "kubeconfig", "secret-for-scheduler.yaml", "secret-for-vc-syncer.yaml"),
    "vc-syncer.yaml",
    'scheduler.tenancy.x-k8s.io/placements: \'{"r1":1,"r2":1}\'',
    'scheduler.tenancy.x-k8s.io/slice: \'{"cpu":"100m", "memory":"100Mi"}\'',
    "scheduler.tenancy.x-k8s.io/superCluster: r1",
)
LISTING = r"""\$ kubectl --context {} get pod -A
NAMESPACE +NAME +READY +STATUS +RESTARTS +AGE
default-[0-9a-f]{{6}}-vc-sample-1-default +(test-1-\S+) +1/1 +Running +0 +\S+
"""


@pytest.fixture
async def demo(tmp_path):
    """Starts a demo whose folder can be found."""
    with owned_folder() as folder:

        async def start(*flags):
            program = await programs.start("demo", *flags, log=tmp_path / "demo.log", env={"TMPDIR": str(folder)})
            started.append(program)
            return program, folder

        started = []
        yield start
        for program in started:
            await program.stop()


async def prints(program, words):
    """Wait until the demo prints a text; all that it printed."""

    async def look():
        output = program.log.read_text()
        if program.has_ended:
            pytest.fail(output[-8000:])
        assert words in output, output[-4000:]
        return output

    return await eventually(look, within=WITHIN)


async def interrupted(program, folder):
    """Press Ctrl-C; the exit code when nothing is left."""
    [made] = folder.iterdir()
    assert process.running(made / "state"), "something runs"
    os.kill(program.pid, signal.SIGINT)
    code = await program.ended(within=60)
    assert list(folder.iterdir()) == []
    assert process.running(made / "state") == process.running(made / "tenants") == {}
    return code


async def test_the_pool_is_shown_as_the_seed_does_and_may_be_kept(demo):
    program, folder = await demo("pool", "--keep")
    output = await prints(program, "until you press Ctrl-C")
    position = 0
    for words in SEED:
        position = output.index(words, position)
    one, both = output[position:].split("--replicas 2\n")
    assert re.search(LISTING.format("r1"), one)
    assert "$ kubectl --context r2 get pod -A\nNo resources found" in one
    pods = [re.search(LISTING.format(name), both)[1] for name in ("r2", "r1")]
    assert len(set(pods)) == 2
    assert await interrupted(program, folder) == 0


async def shown_to_its_end(demo, name):
    """Everything that a demo prints; it leaves nothing behind."""
    program, folder = await demo(name)
    assert await program.ended(within=WITHIN) == 0, program.log.read_text()[-8000:]
    shown, goes = program.log.read_text().split("\n# Stopping and removing everything\n")
    assert (goes, list(folder.iterdir())) == ("", [])
    return shown


@pytest.mark.parametrize(
    ("name", "last"), [("nodes", "$ kubectl --context bergen wait --for=delete pods"), ("tenants", "hello-")]
)
async def test_the_others_are_shown_to_their_end_and_leave_nothing(demo, name, last, tmp_path):
    shown = await shown_to_its_end(demo, name)
    assert last in shown.splitlines()[-1]
    if name == "tenants":
        ran = "'echo $text again'\nmoin again\n" in shown
        assert ran == (requirements.lacking(tmp_path) == []), "logs and exec are shown where containers run"


async def test_a_burst_moves_to_the_other_cluster_with_its_service(demo):
    shown = await shown_to_its_end(demo, "burst")
    before, after = zip(*(delegates(shown, name) for name in burst.CLUSTERS), strict=True)
    assert (sum(before), 0 in before, after) == (10, False, (0, 10))
    for name in burst.CLUSTERS:
        service = shown.split(f"$ kubectl --context {name} get service nginx -o yaml\n")[1].split("\n$ ")[0]
        assert 'io.cilium/global-service: "true"' in service
        assert "  selector:\n    multicluster.admiralty.io/app: nginx" in service


def delegates(shown, cluster):
    """How many delegates run in a cluster, each time they are listed."""
    listings = shown.split(f"$ kubectl --context {cluster} {burst.DELEGATES}\n")[1:]
    return [listing.partition("$ kubectl")[0].count(" Running ") for listing in listings]


async def test_ctrl_c_leaves_nothing(demo):
    program, folder = await demo("tenants")
    await prints(program, "$ kubectl vc create")
    assert await interrupted(program, folder) == 128 + signal.SIGINT


async def test_what_a_killed_demo_left_is_removed_by_local_down(demo, tmp_path):
    program, folder = await demo("tenants")
    await prints(program, "$ kubectl vc create")
    [made] = folder.iterdir()
    program.kill()
    await program.ended()
    assert list(leftovers._programs(made)), "vc-manager outlives the demo"
    ran = await hansa("local", "down", TMPDIR=str(folder), HANSA_STATE=str(tmp_path / "other"))
    assert (ran.code, ran.out) == (0, f"removed what a demo left that was killed: {made}\n"), ran
    assert list(folder.iterdir()) == []
    assert process.running(made / "state") == process.running(made / "tenants") == {}
    assert not list(leftovers._programs(made))


async def test_a_running_demo_is_left_alone(demo, tmp_path):
    program, folder = await demo("nodes")
    await prints(program, "$ hansa local up")
    ran = await hansa("local", "down", TMPDIR=str(folder), HANSA_STATE=str(tmp_path / "other"))
    assert (ran.code, ran.out) == (0, "")
    assert not program.has_ended
    assert await interrupted(program, folder) == 128 + signal.SIGINT
