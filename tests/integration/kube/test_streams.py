"""Logs and upgraded connections, through a real kubelet and as the real kubectl uses them."""

import asyncio
import contextlib
import os

import pytest

import upgrading_proxy
from eventually import eventually
from hansa.kube import errors, logs, resources
from hansa.kube.objects import Object

POD = Object.of(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "box", "namespace": "default"},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "box",
                    "image": "hansa.local/busybox:1",
                    "stdin": True,
                    "command": ["sh", "-c", "echo one; echo two; httpd -p 8080; while read line; do echo $line; done"],
                }
            ],
        },
    }
)


@pytest.fixture(scope="module")
async def box(real_cluster):
    """A client of a cluster in which the pod `box` runs on a real node."""
    async with real_cluster.client("hansa-streams") as client:
        await client.create(resources.PODS, POD)

        async def runs():
            return (await client.get(resources.PODS, "box", namespace="default")).status.get("phase") == "Running"

        await eventually(runs, within=60)
        yield client
        await client.delete(resources.PODS, "box", namespace="default")


async def first(stream, count):
    found = []
    async with contextlib.aclosing(logs.lines(stream)) as lines:
        async for line in lines:
            found.append(line)
            if len(found) == count:
                return found
    return found


async def test_a_log_is_read_whole_or_its_end(box):
    async def whole():
        return await first(await logs.open_log(box, "box", namespace="default"), 2) == [b"one", b"two"]

    await eventually(whole)
    assert await first(await logs.open_log(box, "box", namespace="default", tail=1), 1) == [b"two"]


async def test_a_log_that_cannot_be_read_tells_why(box):
    with pytest.raises(errors.Invalid, match="cannot read the log of pod default/box.*container nobody is not valid"):
        await logs.open_log(box, "box", namespace="default", container="nobody")


@pytest.fixture(params=["WebSocket", "SPDY"])
async def kubectl_by_tunnel(request, box, kubectl):
    """The real kubectl, whose upgraded connections go through our tunnels."""
    async with upgrading_proxy.serving(box) as server:

        async def run(*arguments, text=b""):
            is_websocket = str(request.param == "WebSocket").lower()
            env = {
                **os.environ,
                "KUBECTL_REMOTE_COMMAND_WEBSOCKETS": is_websocket,
                "KUBECTL_PORT_FORWARD_WEBSOCKETS": is_websocket,
                "KUBECONFIG": "/dev/null",
            }
            return await asyncio.create_subprocess_exec(
                kubectl,
                f"--server={server}",
                *arguments,
                env=env,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )

        yield run


async def test_commands_run_in_a_pod_both_ways(kubectl_by_tunnel):
    command = await kubectl_by_tunnel("exec", "-i", "box", "--", "tr", "a-z", "A-Z")
    out, err = await command.communicate(b"loud" * 100_000)
    assert (command.returncode, err.decode()) == (0, "")
    assert out == b"LOUD" * 100_000


async def test_a_command_s_failure_comes_back(kubectl_by_tunnel):
    command = await kubectl_by_tunnel("exec", "box", "--", "sh", "-c", "echo bad >&2; exit 3")
    _, err = await command.communicate()
    assert command.returncode == 3
    assert err.decode().startswith("bad\n")


async def test_a_container_can_be_attached_to(kubectl_by_tunnel):
    command = await kubectl_by_tunnel("attach", "-i", "--quiet", "box")
    command.stdin.write(b"hello there\n")
    async with asyncio.timeout(60):
        while b"hello there" not in (line := await command.stdout.readline()):
            assert line, "the stream ended"
    command.kill()
    await command.communicate()


async def test_a_port_is_forwarded(kubectl_by_tunnel):
    command = await kubectl_by_tunnel("port-forward", "pod/box", ":8080")
    async with asyncio.timeout(60):
        line = (await command.stdout.readline()).decode()
        port = int(line.split(" -> ")[0].rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /nothing HTTP/1.0\r\n\r\n")
        assert b"404 Not Found" in await reader.read()
        writer.close()
    command.kill()
    await command.communicate()


async def test_a_refused_upgrade_is_an_error_with_the_server_s_sentence(box):
    path = "/api/v1/namespaces/default/pods/nobody/exec?command=true&stdout=true"
    headers = [("Connection", "Upgrade"), ("Upgrade", "SPDY/3.1"), ("X-Stream-Protocol-Version", "v4.channel.k8s.io")]
    with pytest.raises(errors.NotFound, match='pods "nobody" not found'):
        await box.tunnel("POST", path, headers=headers)
