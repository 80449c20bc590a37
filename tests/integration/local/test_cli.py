"""`hansa local` as a command: its output, its exit codes, and its state after a kill -9."""

import asyncio
import json
import os
import re
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from hansa.programs import components, process
from leftovers import owned_folder

PIPES = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE}


@dataclass(frozen=True)
class Answer:
    """How a command ended."""

    code: int
    out: str
    err: str


class Hansa:
    """The hansa command with a state folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.state = folder / "state"
        self._env = {**os.environ, "HANSA_STATE": str(self.state)}

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        argv = [sys.executable, "-m", "hansa.cli.main", *arguments]
        return await asyncio.create_subprocess_exec(*argv, env=self._env, **PIPES)

    async def __call__(self, *arguments: str) -> Answer:
        started = await self.start("local", *arguments)
        out, err = await started.communicate()
        assert started.returncode is not None
        return Answer(started.returncode, out.decode(), err.decode())


@pytest.fixture
async def hansa():
    with owned_folder() as folder:
        command = Hansa(folder)
        yield command
        await command("down")
        assert process.running(command.state) == {}


async def test_a_cluster_is_created_listed_used_changed_and_deleted(hansa, kubectl):
    up = await hansa("up", "a", "--nodes", "2", "--etcd-fast")
    assert (up.code, up.err) == (0, "")
    assert up.out.startswith("a is ready at https://127.0.0.1:")
    [row] = json.loads((await hansa("list", "-o", "json")).out)
    assert (row["name"], row["nodes"], row["notRunning"]) == ("a", 2, [])
    table = (await hansa("list")).out.splitlines()
    assert [line.split()[:2] for line in table] == [["NAME", "STATUS"], ["a", "running"]]
    assert (await hansa("nodes", "a", "+1")).out == "a has 3 kwok nodes\n"
    assert (await hansa("nodes", "a", "-2")).out == "a has 1 kwok nodes\n"
    too_many = await hansa("nodes", "a", "-2")
    assert (too_many.code, too_many.err) == (1, "hansa: cluster a has only 1 kwok nodes\n")
    config = hansa.state.parent / "kubeconfig"
    config.write_text((await hansa("kubeconfig")).out)
    assert await _kubectl(kubectl, config, "get", "nodes", "--context=a", "-o", "name") == "node/a-0\n"
    assert "Serving securely" in (await hansa("logs", "a", "kube-apiserver")).out
    down = await hansa("down", "a")
    assert (down.code, down.out) == (0, "a is gone\n")
    assert not hansa.state.exists(), "nothing of it is left"


async def test_a_kubeconfig_of_all_clusters_has_a_context_for_each(hansa):
    assert yaml.safe_load((await hansa("kubeconfig")).out)["contexts"] == []
    await hansa("up", "a", "b", "--etcd-fast")
    config = yaml.safe_load((await hansa("kubeconfig")).out)
    assert [context["name"] for context in config["contexts"]] == ["a", "b"]
    only = yaml.safe_load((await hansa("kubeconfig", "b")).out)
    assert only["current-context"] == "b"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["down", "nobody"], 'there is no local cluster "nobody" (known: none)'),
        (["kubeconfig", "nobody"], 'there is no local cluster "nobody" (known: none)'),
        (["logs", "nobody", "etcd"], 'there is no local cluster "nobody" (known: none)'),
        (["nodes", "nobody", "+1"], 'there is no local cluster "nobody" (known: none)'),
        (["up", "No_Name"], '"No_Name" is not a valid cluster name'),
        (["up", "a", "--nodes", "1", "--node-cpu", "lots"], "--node-cpu:"),
        (["up", "a", "--port", "70000"], "--port 70000"),
        (["up", "a", "--state", "/proc/nowhere"], "cannot lock /proc/nowhere"),
        (["up", "a", "--state", "/dev/null"], "is not a folder"),
    ],
)
async def test_bad_input_gets_one_sentence_and_no_traceback(hansa, arguments, sentence):
    answer = await hansa(*arguments)
    assert answer.code == 1
    assert answer.out == ""
    assert answer.err.startswith("hansa: ")
    assert sentence in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["up"], "the following arguments are required: NAME"),
        (["up", "a", "--node-taint", "x"], 'taint "x" is not of the form key=value:effect'),
        (["up", "a", "--flag", "etc=--x"], '"etc" is none of'),
        (["nodes", "a", "3"], '"3" is not of the form +N or -N'),
    ],
)
async def test_wrong_arguments_print_the_usage(hansa, arguments, sentence):
    answer = await hansa(*arguments)
    assert answer.code == 2
    assert "usage: hansa local" in answer.err
    assert sentence in answer.err


@pytest.mark.parametrize("command", ["", "up", "down", "list", "kubeconfig", "logs", "nodes", "binaries"])
async def test_every_command_explains_itself(hansa, command):
    answer = await hansa(*filter(None, [command]), "--help")
    assert answer.code == 0
    assert answer.out.startswith(f"usage: hansa local {command}".strip())


async def test_a_binary_of_another_version_is_refused_by_name(hansa, tmp_path):
    etcd = tmp_path / "etcd"
    etcd.write_text("#!/bin/sh\necho etcd Version: 3.4.0\n")
    etcd.chmod(0o755)
    answer = await hansa("up", "a", "--binaries", str(tmp_path))
    assert answer.code == 1
    assert "3.4" in answer.err
    assert "3.6" in answer.err
    assert answer.err.count("\n") == 1


async def test_a_full_disk_gets_one_sentence_and_nothing_is_left(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    hansa = f"{sys.executable} -m hansa.cli.main local"
    script = (
        f"mount -t tmpfs -o size=16k tmpfs {small} &&"
        f"({hansa} up a --state {small}/state; echo $?; {hansa} down --state {small}/state; ls -A {small})"
    )
    shell = await asyncio.create_subprocess_exec(
        "unshare", "--mount", *([] if os.geteuid() == 0 else ["--map-root-user"]), "sh", "-c", script, **PIPES
    )
    out, err = await shell.communicate()
    assert out.decode() == "1\na is gone\n"
    assert re.fullmatch(r"hansa: not enough disk space for etcd in \S+: 0 MiB free, 200 MiB needed\n", err.decode())


async def test_logs_of_an_unknown_component_name_those_that_there_are(hansa):
    await hansa("up", "a", "--etcd-fast")
    answer = await hansa("logs", "a", "nothing")
    assert answer.code == 1
    assert "(known: etcd, kube-apiserver, kube-controller-manager, kube-scheduler)" in answer.err


# Moments of an `up` at which its state differs: before anything, etcd starting, the API server starting, all started.
@pytest.mark.parametrize("component", [None, components.ETCD, components.APISERVER, components.SCHEDULER])
async def test_whatever_a_killed_up_left_the_next_one_finishes(hansa, component):
    await _kill_when(hansa, component, "up", "a", "--nodes", "1", "--etcd-fast")
    finished = await hansa("up", "a")
    assert (finished.code, finished.err) == (0, "")
    [row] = json.loads((await hansa("list", "-o", "json")).out)
    assert row["notRunning"] == []


@pytest.mark.parametrize("component", [components.ETCD, components.APISERVER])
async def test_whatever_a_killed_up_left_down_removes(hansa, component):
    await _kill_when(hansa, component, "up", "a", "--nodes", "1", "--etcd-fast")
    assert (await hansa("down")).code == 0
    assert process.running(hansa.state) == {}
    assert not hansa.state.exists()


async def test_a_broken_record_does_not_keep_a_cluster_from_being_removed(hansa):
    await hansa("up", "a", "--etcd-fast")
    (hansa.state / "clusters" / "a" / "cluster.json").write_text("{")
    broken = await hansa("list")
    assert broken.code == 1
    assert 'hansa local down a"' in broken.err
    assert (await hansa("down", "a")).code == 0
    assert not hansa.state.exists()


async def _kill_when(hansa, component, *arguments):
    """Run a command and kill it as soon as a component of the cluster (None: a folder) is there."""
    running = await hansa.start("local", *arguments)

    def has_begun():
        if component is None:
            return hansa.state.exists()
        return component in {name for _, name in process.running(hansa.state)}

    while running.returncode is None and not has_begun():
        await asyncio.sleep(0.005)
    assert running.returncode is None, "it must not have ended before it is killed"
    running.send_signal(signal.SIGKILL)
    await running.communicate()


async def _kubectl(kubectl, config, *arguments):
    started = await asyncio.create_subprocess_exec(kubectl, f"--kubeconfig={config}", *arguments, **PIPES)
    out, _ = await started.communicate()
    return out.decode()
