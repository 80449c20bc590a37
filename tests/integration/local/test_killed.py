"""Commands that were killed with SIGKILL leave nothing for good: the next `hansa local down` removes it."""

import pytest

import programs
from command_runs import hansa
from hansa.local import State
from hansa.programs import files, process
from leftovers import owned_folder

pytestmark = pytest.mark.timeout(300)


def at_times(first, *others):
    """Times of a kill: one for every run, and more for long runs."""
    return [first, *(pytest.param(one, marks=pytest.mark.soak) for one in others)]


@pytest.fixture
def state():
    """The path of a state folder."""
    with owned_folder() as folder:
        (folder / "tmp").mkdir()
        yield folder / "state"


def environment(state):
    # Its own temporary folder, so that no killed demo of another run is swept.
    return {"HANSA_STATE": str(state), "TMPDIR": str(state.parent / "tmp")}


async def killed(state, seconds, *words):
    """Run a command, and kill it after some seconds unless it has ended."""
    log = state.parent / "log"
    program = await programs.start("local", *words, log=log, env=environment(state))
    try:
        await program.ended(within=seconds)
    except TimeoutError:
        program.kill()
        await program.ended()


async def down(state):
    ran = await hansa("local", "down", **environment(state))
    assert ran.code == 0, ran
    assert process.running(state) == {}
    assert not state.exists(), sorted(map(str, state.rglob("*")))


@pytest.mark.parametrize("seconds", at_times(2.2, 0.7, 1.3, 4.0))
async def test_down_removes_what_a_killed_up_left(state, seconds):
    await killed(state, seconds, "up", "a", "--etcd-fast")
    await down(state)


@pytest.mark.parametrize("seconds", at_times(0.8, 0.6, 1.0, 1.5))
async def test_down_completes_a_killed_down(state, seconds):
    ran = await hansa("local", "up", "a", "b", "--etcd-fast", **environment(state))
    assert ran.code == 0, ran
    await killed(state, seconds, "down")
    await down(state)


async def test_down_removes_locks_and_an_etcd_without_clusters(state):
    (state / "locks").mkdir(parents=True)
    (state / "locks" / "a").touch()
    (state / "lock").touch()
    (state / "etcd").mkdir()
    process.spawn(process.Identity(state, "", "etcd"), ["sleep", "1000"], log=state / "etcd" / "log")
    await down(state)


async def test_down_leaves_a_lock_alone_that_a_command_holds(state):
    async with files.lock(state / "locks" / "a", deadline=1):
        ran = await hansa("local", "down", **environment(state))
        assert ran.code == 0, ran
        assert (state / "locks" / "a").exists()
    assert not State(state).records()
    await down(state)


async def test_down_without_anything_to_remove_is_quiet(state):
    ran = await hansa("local", "down", **environment(state))
    assert (ran.code, ran.out, ran.err) == (0, "", "")
