"""Control groups of nodes, and the permissions that they need."""

import asyncio
import os
from asyncio.subprocess import Process
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import real_machine
from hansa.local.machines import cgroups, requirements
from hansa.local.machines.cgroups import Busy
from hansa.local.machines.requirements import CannotRunNodes


@pytest.fixture(autouse=True)
def capable(tmp_path: Path) -> None:
    real_machine.tools(tmp_path)


@pytest.fixture
async def sleeper() -> AsyncIterator[Process]:
    """A process that does nothing, wherever it is put."""
    child = await asyncio.create_subprocess_exec("sleep", "60")
    yield child
    if child.returncode is None:
        child.kill()
    await child.wait()


@pytest.fixture
async def name(sleeper: Process) -> AsyncIterator[str]:
    """The name of groups that the test makes; they go when the sleeper has gone."""
    name = f"hansa-test-{os.getpid()}"
    yield name
    if sleeper.returncode is None:
        sleeper.kill()
    await cgroups.remove(name)


async def test_control_groups_go_when_their_processes_have_gone(name: str, sleeper: Process) -> None:
    cgroups.ensure(name)
    cgroups.ensure(name)
    assert cgroups.names(name) == {name}
    below = cgroups.hierarchies()[0].path / name / "below"
    below.mkdir()
    (below / "cgroup.procs").write_text(str(sleeper.pid))
    removal = asyncio.create_task(cgroups.remove(name))
    await asyncio.sleep(0)
    assert not removal.done()
    sleeper.kill()
    await removal
    assert cgroups.names(name) == set()


async def test_control_groups_that_stay_busy_are_named(name: str, sleeper: Process) -> None:
    cgroups.ensure(name)
    group = cgroups.hierarchies()[0].path / name
    (group / "cgroup.procs").write_text(str(sleeper.pid))
    with pytest.raises(Busy, match=f"the control group {group} still has processes"):
        await cgroups.remove(name, deadline=0.1)


async def test_without_root_real_nodes_are_refused_with_the_reason(tmp_path: Path) -> None:
    os.seteuid(65534)
    try:
        with pytest.raises(CannotRunNodes, match="this machine cannot run real nodes: real nodes need root"):
            requirements.prepare(tmp_path)
    finally:
        os.seteuid(0)
