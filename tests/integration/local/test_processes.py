"""Processes that are found by a variable in their environment."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from eventually import eventually
from hansa.programs import process
from hansa.programs.process import DEFAULT_OPTIONS, Identity, ProcessOptions


@pytest.fixture
async def spawn(tmp_path):
    """Starts a process of this test's own; all are ended with the test."""

    def start(*argv, component="one", options=DEFAULT_OPTIONS):
        log = tmp_path / f"{component}.log"
        return process.spawn(Identity(tmp_path, "c", component), argv, log=log, options=options)

    yield start
    for left in process.running(tmp_path).values():
        left.signal(signal.SIGKILL)
        assert await left.ended(10)


async def found(state, **expected):
    """Wait until exactly these components are found; a process is marked a moment after it was started."""

    async def look():
        assert {component: p.pid for (_, component), p in process.running(state).items()} == expected
        return True

    await eventually(look)


async def test_what_was_started_is_found_with_its_command_line(spawn, tmp_path):
    one, two = spawn("sleep", "100"), spawn("sleep", "200", component="two")
    await found(tmp_path, one=one.pid, two=two.pid)
    assert process.running(tmp_path)["c", "two"].argv == ("sleep", "200")
    assert process.running(tmp_path / "elsewhere") == {}


async def test_a_child_that_inherits_the_mark_is_not_mistaken_for_its_parent(spawn, tmp_path):
    parent = spawn("sh", "-c", "sleep 100; true")
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")

    async def has_a_child():
        return children.read_text()

    await eventually(has_a_child)
    await found(tmp_path, one=parent.pid)


async def test_a_batch_process_is_scheduled_as_such_and_no_other(spawn):
    one, two = spawn("sleep", "100", options=ProcessOptions(is_batch=True)), spawn("sleep", "100", component="two")
    policies = [os.sched_getscheduler(pid) for pid in (one.pid, two.pid, 0)]
    assert policies == [os.SCHED_BATCH, os.SCHED_OTHER, os.SCHED_OTHER]


async def test_a_process_is_started_with_the_niceness_of_its_options(spawn):
    one = spawn("sleep", "100", options=ProcessOptions(nice=7))
    two = spawn("sleep", "100", component="two")
    inherited = os.getpriority(os.PRIO_PROCESS, 0)
    assert inherited != 7, "the run itself is nice 7"
    assert [os.getpriority(os.PRIO_PROCESS, pid) for pid in (one.pid, two.pid, 0)] == [7, inherited, inherited]
    group = Path(f"/proc/{one.pid}/autogroup")
    if group.exists():  # not every kernel schedules sessions as groups
        assert group.read_text().endswith("nice 7\n")


async def test_timers_of_processes_may_come_late_and_ours_may_not(spawn):
    ours = Path("/proc/self/timerslack_ns").read_text()
    theirs = Path(f"/proc/{spawn('sleep', '100').pid}/timerslack_ns").read_text()
    assert theirs == f"{process.TIMER_SLACK}\n"
    assert Path("/proc/self/timerslack_ns").read_text() == ours != theirs


async def test_the_environment_of_the_caller_overrides_the_defaults(spawn, tmp_path, monkeypatch):
    monkeypatch.setenv("HANSA_HERE", "here")
    options = ProcessOptions({"HANSA_HERE": "default", "HANSA_THERE": "default"})
    assert await spawn("sh", "-c", "echo $HANSA_HERE $HANSA_THERE", options=options).ended(10)
    assert (tmp_path / "one.log").read_text() == "here default\n"


async def test_a_process_that_was_stopped_is_gone(spawn, tmp_path):
    one = spawn("sleep", "100")
    await one.stop()
    await found(tmp_path)


async def test_a_process_that_refuses_to_end_is_killed_after_its_grace(spawn, tmp_path):
    stubborn = spawn(
        sys.executable, "-c", "import signal as s; s.signal(s.SIGTERM, s.SIG_IGN); print(1, flush=True); s.pause()"
    )
    log = tmp_path / "one.log"

    async def is_ready():
        return log.read_text() == "1\n"

    await eventually(is_ready)
    await stubborn.stop(grace=0.1)
    await found(tmp_path)


async def test_a_frozen_process_can_be_stopped(spawn, tmp_path):
    frozen = spawn("sleep", "100")
    frozen.signal(signal.SIGSTOP)
    await frozen.stop(grace=10)
    await found(tmp_path)


async def test_a_handle_of_an_ended_process_signals_no_other_process(spawn):
    gone = spawn("true")
    assert await gone.ended(10)
    gone.signal(signal.SIGKILL)
    await gone.stop()


async def test_waiting_for_a_process_has_an_end(spawn):
    one = spawn("sleep", "100")
    assert not await one.ended(0.01)


async def test_a_process_outlives_its_starter_and_is_found_again(tmp_path):
    code = (
        "import sys; from pathlib import Path; from hansa.programs import process;"
        "state = Path(sys.argv[1]); identity = process.Identity(state, 'c', 'one');"
        "print(process.spawn(identity, ['sleep', '100'], log=state / 'log').pid)"
    )
    starter = await asyncio.create_subprocess_exec(sys.executable, "-c", code, tmp_path, stdout=asyncio.subprocess.PIPE)
    out, _ = await starter.communicate()
    await found(tmp_path, one=int(out))
    await process.running(tmp_path)["c", "one"].stop()
    await found(tmp_path)
