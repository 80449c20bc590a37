"""logs, exec, cp, attach, debug and port-forward of a pod on a virtual node: as with the same command below."""

import asyncio
import contextlib
import hashlib
import random

import pytest

from eventually import eventually
from hansa.kube.server import DEADLINE
from hansa.local.machines import images

PARALLEL = 100  # requests through one port-forward


@pytest.mark.parametrize(
    "options",
    [
        ["box"],
        ["box", "--tail=2"],
        ["box", "--since=1h", "--timestamps"],
        ["box", "--since-time=2020-01-01T00:00:00Z", "-c", "main"],
        ["box", "--limit-bytes=9"],
        ["box", "--all-containers", "--prefix"],
    ],
    ids=" ".join,
)
async def test_logs_are_those_of_the_lower_pod(way, options):
    code, out, _ = await way.both("logs", *options)
    assert (code, out != b"") == (0, True)


async def test_what_a_kubelet_refuses_is_refused_with_its_words(way):
    for arguments in (
        ["logs", "box", "-c", "nobody"],
        ["logs", "box", "--previous"],
        ["logs", "nobody"],
        ["exec", "box", "-c", "nobody", "--", "true"],
        ["exec", "box", "--", "sh", "-c", "no-such-program"],
        ["attach", "box", "-c", "nobody"],
    ):
        code, _, err = await way.both(*arguments)
        assert (code != 0, err != b"") == (True, True), arguments


async def test_a_container_that_is_not_started_says_so(way):
    waits = [{"name": "first", "image": images.BUSYBOX, "args": ["sleep", "1000000"]}]
    await way.create("slow", images.BUSYBOX, "true", until="Pending", initContainers=waits)

    async def says():
        code, _, err = await way.both("logs", "slow", "-c", "main")
        assert (code, b"is waiting to start: PodInitializing" in err) == (1, True), err
        return True

    await eventually(says)
    await way.both("exec", "slow", "-c", "main", "--", "true")
    await way.above("delete", "pod", "slow", "--wait=false")


async def test_logs_of_a_restarted_container_are_those_of_the_former_one(way):
    await way.create("twice", images.BUSYBOX, "sh", "-c", "trap 'exit 7' USR1; date +%s; while :; do sleep 1; done")
    _, first, _ = await way.both("logs", "twice")
    await way.above("exec", "twice", "--", "kill", "-USR1", "1")

    async def restarted():
        code, previous, _ = await way.above("logs", "twice", "--previous")
        assert (code, previous) == (0, first)
        return True

    await eventually(restarted)
    await way.both("logs", "twice", "--previous")
    await way.above("delete", "pod", "twice", "--wait=false")


async def test_fifty_followers_receive_a_line_as_it_is_written(way):
    """Also after a time that is longer than the deadline of other requests."""
    async with way.upper.cluster.client("test") as client, asyncio.TaskGroup() as group:
        path = f"/api/v1/namespaces/{way.namespace}/pods/box/log?follow=true&tailLines=1"
        streams = await asyncio.gather(*(client.open(path) for _ in range(50)))
        firsts = [await one.read() for one in streams]
        assert len(set(firsts)) == 1
        await asyncio.sleep(DEADLINE + 2)
        received = [group.create_task(one.read()) for one in streams]
        await way.above("exec", "box", "--", "sh", "-c", "echo now > /proc/1/fd/1", may_fail=False)
        async with asyncio.timeout(60):
            assert {await one for one in received} == {b"now\n"}
        for one in streams:
            one.close()


async def test_exec_has_the_streams_and_the_exit_code_of_the_command(way):
    code, out, err = await way.both("exec", "box", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (code, out) == (3, b"out\n")
    assert err.startswith(b"err\n")
    sent = b"moin\n" * 50_000
    code, out, _ = await way.both("exec", "-i", "box", "--", "sh", "-c", "cat; exit 0", stdin=sent)
    assert (code, out == sent) == (0, True)


async def test_a_terminal_has_the_size_of_the_users_terminal_also_when_that_changes(way, terminal):
    shell = await terminal("exec", "-it", "box", "--", "sh", rows=40, columns=100)
    await shell.shows("stty size", "40 100")
    shell.resize(50, 120)
    await shell.shows("stty size", "50 120")
    shell.type("exit 5")
    assert await shell.ended() == 5


async def test_files_are_copied_both_ways(way, tmp_path):
    await copy_both_ways(way, tmp_path, 20)


@pytest.mark.soak
async def test_large_files_are_copied_both_ways(way, tmp_path):
    await copy_both_ways(way, tmp_path, 200)


async def copy_both_ways(way, folder, mib):
    there, back = folder / "there", folder / "back"
    there.write_bytes(random.Random(1).randbytes(2**20) * mib)
    await way.above("cp", str(there), "box:/tmp/copied", may_fail=False)
    checksum = hashlib.sha256(there.read_bytes()).hexdigest().encode()
    assert (await way.both("exec", "box", "--", "sha256sum", "/tmp/copied"))[1].split()[0] == checksum
    await way.above("cp", "box:/tmp/copied", str(back), may_fail=False)
    assert back.read_bytes() == there.read_bytes()
    await way.above("exec", "box", "--", "rm", "/tmp/copied")


async def test_attach_receives_what_the_container_writes(way):
    async with way.started("attach", "box") as attached:

        async def received():
            await way.above("exec", "box", "--", "sh", "-c", "echo attached > /proc/1/fd/1")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(2):
                    return await attached.stdout.readuntil(b"attached\n")

        await eventually(received)


async def test_a_container_for_debugging_is_added_to_a_running_pod(way):
    command = ("sh", "-c", "echo seen; exit 4")
    await way.above("debug", "box", "-c", "peek", f"--image={images.BUSYBOX}", "--", *command, may_fail=False)

    async def seen():
        code, out, _ = await way.above("logs", "box", "-c", "peek")
        assert (code, out) == (0, b"seen\n")
        return True

    await eventually(seen, within=90)
    await way.both("logs", "box", "-c", "peek")


async def test_forwarded_ports_serve_many_connections(way):
    server = ("/agnhost", "netexec", "--http-port=8081", "--udp-port=-1")
    async with way.started("exec", "web", "--", *server) as running, asyncio.timeout(180):
        while b"port 8081" not in (line := await running.stderr.readline()):
            assert line, "the server ended"
        async with way.forwarded("web", 8080, 8081) as ports:
            answers = await asyncio.gather(*(fetch(port) for port in ports * (PARALLEL // 2)))
            assert set(answers) == {way.lower_names["web"].encode()}


async def fetch(port):
    """The hostname that a web server of the pod says."""
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /hostname HTTP/1.0\r\n\r\n")
        answer = await reader.read()
        writer.close()
    return answer.rpartition(b"\r\n")[2]
