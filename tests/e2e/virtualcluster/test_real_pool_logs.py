"""logs, exec, cp, attach and port-forward of a pool's tenants: the same command works wherever a pod runs.

Each is compared with the same command in the super cluster that runs the pod.
"""

import asyncio
import hashlib
import urllib.request

import pytest

import pool_agent_lab
import real_machine
from hansa.kube.client import Client
from hansa.kube.credentials import kubeconfig
from pool_agent_lab import SPACE, SUPERS

pytestmark = pytest.mark.timeout(900)
FOLLOWERS = 50


@pytest.fixture(scope="module")
async def lab(fleet, kubectl, tmp_path_factory):
    real_machine.tools(fleet.state.root)
    async with pool_agent_lab.opened(fleet, kubectl, tmp_path_factory.mktemp("pool-agents")) as made:
        yield made


@pytest.fixture(params=["blue", "green"])
def tenant(lab, request):
    return lab.tenants[request.param]


@pytest.fixture(params=SUPERS)
def both(lab, tenant, request):
    """Run a command of kubectl as a tenant, and where its pod is; the result, which is the same."""
    kubectl, below = lab.below(tenant.vc.name, request.param)

    async def run(verb, kind, *words, stdin=b""):
        command = (verb, f"{kind}-{request.param}", *words)
        above = await tenant.kubectl.run("-n", SPACE, *command, stdin=stdin)
        assert above == await kubectl.run("-n", below, *command, stdin=stdin), command
        return above

    run.cluster = request.param
    return run


async def test_logs_and_exec_are_those_of_the_super_pod(both, tenant):
    name = f"{tenant.vc.name} in {both.cluster}"
    for options in (
        ("--tail=3",),
        ("--since=1h", "--timestamps"),
        ("--since-time=2020-01-01T00:00:00Z", "-c", "main"),
        ("--limit-bytes=9",),
        ("--all-containers", "--prefix"),
    ):
        code, out, _ = await both("logs", "box", *options)
        assert (code, out != b"") == (0, True), options
    assert f"line 5 of {name}".encode() in (await both("logs", "box"))[1]
    code, out, err = await both("exec", "box", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (code, out, err.startswith(b"err\n")) == (3, b"out\n", True)
    sent = b"moin\n" * 20_000
    code, out, _ = await both("exec", "box", "-i", "--", "cat", stdin=sent)
    assert (code, out == sent) == (0, True)


@pytest.mark.parametrize("cluster", SUPERS)
async def test_files_are_copied_both_ways(tenant, cluster, tmp_path):
    there, back = tmp_path / "there", tmp_path / "back"
    there.write_bytes(hashlib.sha256(cluster.encode()).digest() * 100_000)
    await tenant.kubectl("-n", SPACE, "cp", str(there), f"box-{cluster}:/tmp/copied")
    await tenant.kubectl("-n", SPACE, "cp", f"box-{cluster}:/tmp/copied", str(back))
    assert back.read_bytes() == there.read_bytes()


@pytest.mark.parametrize("cluster", SUPERS)
async def test_a_forwarded_port_serves_a_hundred_requests_at_once(tenant, cluster):
    forward = await tenant.kubectl.start(
        "-n", SPACE, "port-forward", f"pod/web-{cluster}", ":8080", "--address=127.0.0.1"
    )
    try:
        async with asyncio.timeout(60):
            said = await forward.stdout.readline()
        url = f"http://127.0.0.1:{said.decode().split(' -> ')[0].rpartition(':')[2]}/hostname"

        def fetched():
            return urllib.request.urlopen(url, timeout=60).read().decode()

        assert set(await asyncio.gather(*(asyncio.to_thread(fetched) for _ in range(100)))) == {f"web-{cluster}"}
    finally:
        forward.terminate()
        await forward.communicate()


async def test_fifty_followers_in_two_super_clusters_receive_a_line_as_it_is_written(lab):
    blue = lab.tenants["blue"]
    config = kubeconfig.from_files(lab.pool.folder / "blue.kubeconfig")
    async with Client(config, user_agent="followers", in_flight=FOLLOWERS) as client:
        paths = [f"/api/v1/namespaces/{SPACE}/pods/box-{one}/log?follow=true&tailLines=1" for one in SUPERS]
        streams = await asyncio.gather(*(client.open(paths[number % 2]) for number in range(FOLLOWERS)))
        for one in SUPERS:
            await blue.kubectl("-n", SPACE, "exec", f"box-{one}", "--", "sh", "-c", "echo now > /proc/1/fd/1")

        async def received(stream):
            data = b""
            while b"now\n" not in data:
                data += await stream.read()

        async with asyncio.timeout(60):
            await asyncio.gather(*map(received, streams))
        for one in streams:
            one.close()


async def test_a_tenant_reaches_only_its_own_pods_of_the_super_cluster_that_is_called(lab):
    for cluster, other in (SUPERS, SUPERS[::-1]):
        for name in lab.tenants:
            status, text = await lab.call(cluster, f"/containerLogs/{SPACE}/box-{cluster}/main", name)
            assert (status, f"line 5 of {name} in {cluster}" in text) == (200, True)
        assert (await lab.call(cluster, f"/containerLogs/{SPACE}/box-{other}/main", "blue"))[0] == 404
        below = lab.tenants["green"].below(SPACE)
        assert (await lab.call(cluster, f"/containerLogs/{below}/box-{cluster}/main", "blue"))[0] == 404
