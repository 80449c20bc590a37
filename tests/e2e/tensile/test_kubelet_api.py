"""logs, exec, cp, attach and port-forward of a pod on a virtual node: as with the same command in the lower cluster."""

import asyncio
import datetime
import hashlib
import json
import urllib.request

import pytest

import kubelet_calls
import real_machine
from eventually import eventually
from hansa.kube import certificates
from hansa.kube.server import DEADLINE
from hansa.local import ClusterSpec
from hansa.local.machines import images
from league import League, container, member, pod

pytestmark = pytest.mark.timeout(600)
LINES = 'for i in 1 2 3 4 5; do echo "line $i"; done; echo oops >&2; sleep 1000000'


@pytest.fixture(scope="module")
async def league(fleet, kubectl, tmp_path_factory):
    """A cluster without nodes, and one with a real node below it."""
    folder = tmp_path_factory.mktemp("kubelet-api")
    real_machine.tools(folder)
    specs = [ClusterSpec("kubelet-upper"), ClusterSpec("kubelet-lower", real_nodes=1)]
    try:
        upper, lower = (member(made, kubectl) for made in await fleet.up(specs))
        made = League(upper, {lower.name: lower}, folder)
        await made.start()
        await made.ready()
        yield made
        await made.stop()
    finally:
        await fleet.down([one.name for one in specs])


@pytest.fixture(scope="module")
async def pods(league):
    """A pod that writes lines, and a web server, in namespace default."""
    spec = {"terminationGracePeriodSeconds": 0}
    box = container(image=images.BUSYBOX, args=["sh", "-c", LINES])
    web = container(image=images.AGNHOST, args=["netexec", "--http-port=8080"])
    for name, one in (("box", box), ("web", web)):
        made = pod(name, on="kubelet-lower", containers=[one], **spec)
        await league.upper.kubectl("create", "-f", "-", stdin=json.dumps(made))
    for name in ("box", "web"):
        await league.phase("default", name, within=120)
    return league


@pytest.fixture
def both(pods):
    """Run a command of kubectl above and below; the result above, which must be the same."""

    async def run(*arguments, stdin=b""):
        above = await pods.upper.kubectl.run(*arguments, stdin=stdin)
        below = await pods.lowers["kubelet-lower"].kubectl.run(*arguments, stdin=stdin)
        assert above == below
        return above

    return run


async def port(league):
    node = await league.upper.find("node", "vn-kubelet-lower")
    return node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]


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
async def test_logs_are_those_of_the_lower_pod(both, options):
    code, out, _ = await both("logs", *options)
    assert (code, out != b"") == (0, True)


async def test_refused_logs_say_what_a_kubelet_says(both):
    for options in (["box", "-c", "nobody"], ["box", "--previous"], ["nobody"]):
        code, _, err = await both("logs", *options)
        assert (code, err != b"") == (1, True)


async def test_followed_logs_are_received_as_they_are_written(pods):
    """Also after a time that is longer than the deadline of other requests."""
    kube = pods.upper.kubectl
    follow = await kube.start("logs", "-f", "box", "--tail=0")
    await asyncio.sleep(DEADLINE + 2)
    await kube("exec", "box", "--", "sh", "-c", "echo now > /proc/1/fd/1")
    async with asyncio.timeout(60):
        assert await follow.stdout.readline() == b"now\n"
    follow.terminate()
    await follow.communicate()


async def test_exec_has_the_streams_and_the_exit_code_of_the_command(both):
    code, out, err = await both("exec", "box", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (code, out) == (3, b"out\n")
    assert err.startswith(b"err\n")
    sent = b"moin\n" * 50_000
    code, out, _ = await both("exec", "-i", "box", "--", "sh", "-c", "cat; exit 0", stdin=sent)
    assert (code, out == sent) == (0, True)


async def test_files_are_copied_both_ways(pods, tmp_path):
    there, back = tmp_path / "there", tmp_path / "back"
    there.write_bytes(hashlib.sha256(b"seed").digest() * 200_000)
    await pods.upper.kubectl("cp", str(there), "box:/tmp/copied")
    await pods.upper.kubectl("cp", "box:/tmp/copied", str(back))
    assert back.read_bytes() == there.read_bytes()


async def test_attach_receives_what_the_container_writes(pods):
    kube = pods.upper.kubectl
    attached = await kube.start("attach", "box")

    async def received():
        await kube("exec", "box", "--", "sh", "-c", "echo attached > /proc/1/fd/1")
        async with asyncio.timeout(2):
            while (line := await attached.stdout.readline()) != b"attached\n":
                assert line
        return True

    try:
        await eventually(received, within=60)
    finally:
        attached.terminate()
        await attached.communicate()


async def test_a_forwarded_port_serves_many_connections(pods):
    forward = await pods.upper.kubectl.start("port-forward", "pod/web", ":8080", "--address=127.0.0.1")
    try:
        async with asyncio.timeout(60):
            said = await forward.stdout.readline()
        local = said.decode().split(" -> ")[0].rpartition(":")[2]

        def fetched():
            return urllib.request.urlopen(f"http://127.0.0.1:{local}/hostname", timeout=60).read()

        answers = await asyncio.gather(*(asyncio.to_thread(fetched) for _ in range(20)))
        assert set(answers) == {b"web"}
    finally:
        forward.terminate()
        await forward.communicate()


async def test_callers_without_a_right_get_nothing(pods, tmp_path):
    where, path = await port(pods), "/containerLogs/default/box/main"
    assert await kubelet_calls.call(where, path) == (401, "Unauthorized")
    assert await kubelet_calls.call(where, path, token="made-up") == (401, "Unauthorized")
    token = (await pods.upper.kubectl("create", "token", "default")).strip()
    status, sentence = await kubelet_calls.call(where, path, token=token)
    assert (status, "verb=get, resource=nodes, subresource=proxy" in sentence) == (403, True)
    # What exists and what does not is the same to a caller without rights.
    assert (await kubelet_calls.call(where, "/configz", token=token))[0] == 403


async def test_a_certificate_of_another_authority_is_refused(pods, tmp_path):
    now = datetime.datetime.now(datetime.UTC)
    subject = certificates.Subject("kube-apiserver-kubelet-client", ("system:masters",))
    pair = certificates.issue(certificates.authority("kubernetes", now), subject, now)
    (tmp_path / "pair").write_bytes(pair.certificate + pair.key)
    answer = await kubelet_calls.call(
        await port(pods), "/containerLogs/default/box/main", certificate=tmp_path / "pair"
    )
    assert answer == (0, "")


async def test_a_caller_with_the_right_reads_only_what_is_served(pods):
    where, kube = await port(pods), pods.upper.kubectl
    await kube("create", "clusterrole", "reads-nodes", "--verb=get,create", "--resource=nodes/proxy")
    await kube("create", "serviceaccount", "reader")
    await kube(
        *("create", "clusterrolebinding", "reader", "--clusterrole=reads-nodes", "--serviceaccount=default:reader")
    )
    token = (await kube("create", "token", "reader")).strip()
    status, logs = await kubelet_calls.call(where, "/containerLogs/default/box/main", token=token)
    assert (status, "line 5" in logs) == (200, True)
    for path in ("/configz", "/logs/", "/containerLogs/kube-system/box/main", "/containerLogs/default/%2E%2E/main"):
        assert (await kubelet_calls.call(where, path, token=token))[0] == 404, path
    flood = "/containerLogs/default/box/main?command=" + "x" * 2**20
    assert (await kubelet_calls.call(where, flood, token=token))[0] in (0, 431)
