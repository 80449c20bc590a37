"""logs, exec, cp, attach and port-forward of tenants through vn-agent: as with the same command in the super cluster.

Everything is run with a vn-agent that calls the API server, and with one that calls the node's kubelet.
"""

import asyncio
import contextlib
import datetime
import hashlib
import json
import random
import time
import urllib.request
from pathlib import Path

import pytest

import vn_agent_lab
from eventually import eventually
from hansa.kube import certificates
from hansa.kube.certificates import Subject
from hansa.programs import ports
from hansa.tenancy import installing
from hansa.tenancy.api import VIRTUAL_CLUSTERS
from hansa.tenancy.operator import cluster_versions
from vn_agent_lab import LONG

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
async def lab(real_cluster, kubectl, tmp_path_factory):
    async with real_cluster.client("hansa-test") as client:
        await installing.install(client, cluster_versions.samples())
        folder = tmp_path_factory.mktemp("vn-agent")
        async with vn_agent_lab.opened(real_cluster, kubectl, client, folder) as made:
            yield made


@pytest.fixture(scope="module", params=["api-server", "kubelet"])
async def agent(lab, request):
    """The lab with a vn-agent in this mode."""
    await lab.start(*(lab.kubelet_mode() if request.param == "kubelet" else ()))
    return lab


def fetched(url):
    return urllib.request.urlopen(url, timeout=60).read().decode()


@pytest.fixture
def both(agent):
    """Run a command of kubectl as a tenant, and in the super cluster; the result above, which must be the same."""

    async def run(*arguments, namespace="shop", stdin=b""):
        blue = agent.tenants["blue"]
        above = await blue.kubectl.run("-n", namespace, *arguments, stdin=stdin)
        below = await agent.direct.run("-n", blue.below(namespace), *arguments, stdin=stdin)
        assert above == below
        return above

    return run


async def test_logs_are_those_of_the_super_pod(both):
    for options in (
        ("box",),
        ("box", "--tail=2"),
        ("box", "--since=1h", "--timestamps"),
        ("box", "--since-time=2020-01-01T00:00:00Z", "-c", "main"),
        ("box", "--limit-bytes=9"),
        ("box", "--all-containers", "--prefix"),
    ):
        code, out, _ = await both("logs", *options)
        assert (code, out != b"") == (0, True), options
    assert b"line 5 of blue" in (await both("logs", "box", namespace=LONG))[1]


async def test_refused_logs_say_what_a_kubelet_says_in_the_tenants_names(agent):
    blue = agent.tenants["blue"]
    for options in (["box", "-c", "nobody"], ["box", "--previous"], ["nobody"]):
        code, _, err = await blue.kubectl.run("-n", "shop", "logs", *options)
        assert (code, blue.vc.root.encode() in err, err != b"") == (1, False, True)


async def test_exec_has_the_streams_and_the_exit_code_of_the_command(both):
    code, out, err = await both("exec", "box", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (code, out) == (3, b"out\n")
    assert err.startswith(b"err\n")
    sent = b"moin\n" * 50_000
    code, out, _ = await both("exec", "-i", "box", "--", "sh", "-c", "cat; exit 0", stdin=sent)
    assert (code, out == sent) == (0, True)


@pytest.mark.parametrize("mib", [6, pytest.param(200, marks=pytest.mark.soak)])
async def test_files_are_copied_both_ways(agent, tmp_path, mib):
    kube, there, back = agent.tenants["blue"].kubectl, tmp_path / "there", tmp_path / "back"
    there.write_bytes(random.Random(1).randbytes(2**20) * mib)
    await kube("-n", "shop", "cp", str(there), "box:/tmp/copied")
    checksum = hashlib.sha256(there.read_bytes()).hexdigest()
    assert (await kube("-n", "shop", "exec", "box", "--", "sha256sum", "/tmp/copied")).split()[0] == checksum
    await kube("-n", "shop", "cp", "box:/tmp/copied", str(back))
    assert back.read_bytes() == there.read_bytes()
    await kube("-n", "shop", "exec", "box", "--", "rm", "/tmp/copied")


async def test_followed_and_attached_output_is_received_as_it_is_written(agent):
    kube = agent.tenants["blue"].kubectl
    readers = [
        await kube.start("-n", "shop", *words) for words in (("logs", "-f", "box", "--tail=0"), ("attach", "box"))
    ]

    async def received(reader):
        await kube("-n", "shop", "exec", "box", "--", "sh", "-c", "echo now > /proc/1/fd/1")
        with contextlib.suppress(TimeoutError):  # it is not attached yet
            async with asyncio.timeout(2):
                while (line := await reader.stdout.readline()) != b"now\n":
                    assert line
            return True
        return False

    try:
        for one in readers:
            await eventually(lambda one=one: received(one), within=60)
    finally:
        for one in readers:
            one.terminate()
            await one.communicate()


async def test_a_forwarded_port_serves_many_connections(agent):
    kube = agent.tenants["blue"].kubectl
    forward = await kube.start("-n", "shop", "port-forward", "pod/web", ":8080", "--address=127.0.0.1")
    try:
        async with asyncio.timeout(60):
            said = await forward.stdout.readline()
        local = said.decode().split(" -> ")[0].rpartition(":")[2]

        url = f"http://127.0.0.1:{local}/hostname"
        assert set(await asyncio.gather(*(asyncio.to_thread(fetched, url) for _ in range(20)))) == {"web"}
    finally:
        forward.terminate()
        await forward.communicate()


async def test_a_tenant_reaches_its_own_pods_only(agent):
    blue, green = agent.tenants["blue"], agent.tenants["green"]
    path = "/containerLogs/shop/box/main"
    for one, name in ((blue, "blue"), (green, "green")):
        status, text = await agent.call(path, certificate=one.certificate)
        assert (status, f"line 5 of {name}" in text) == (200, True)
    missing = (404, 'pod "shop/web2" does not exist')
    assert await agent.call("/containerLogs/shop/web2/main", certificate=blue.certificate) == missing
    for other in (
        f"/containerLogs/{green.below('shop')}/box/main",
        f"/containerLogs/shop/{green.below('shop')}%2Fbox/main",
        "/containerLogs/shop/../../box/main",
        f"/containerLogs/{'../' * 3}{green.below('shop')}/box/main",
        f"/containerLogs/..%2f{green.below('shop')}/box/main",
        f"/api/v1/namespaces/{green.below('shop')}/pods/box/log",
        "/logs/",
        "/logs/kubelet.log",
        "/configz",
        "/debug/pprof/heap",
        "/run/shop/box/main",
        "/metrics",
        "/",
    ):
        status, text = await agent.call(other, certificate=blue.certificate)
        assert (status, "green" in text.replace(green.below("shop"), "")) == (404, False), other


async def test_callers_that_are_no_tenant_get_nothing(agent, tmp_path):
    blue, path, now = agent.tenants["blue"], "/containerLogs/shop/box/main", datetime.datetime.now(datetime.UTC)
    offset = agent.log.stat().st_size
    assert await agent.call(path) == (401, "Unauthorized")
    assert await agent.call("/healthz") == (401, "Unauthorized")
    subject = Subject(blue.vc.root, names=("kubernetes",), is_both=True)
    other_ca = certificates.issue(certificates.authority("kubernetes", now), subject, now)
    self_signed = certificates.authority(blue.vc.root, now)
    # Issued by the tenant's own CA, as its controller-manager may for any of its users; but not recorded.
    root = await agent.operator.secret(blue.vc, "root-ca")
    own_ca = certificates.issue(certificates.KeyPair(root["tls.crt"], root["tls.key"]), subject, now)
    for pair, answer in ((other_ca, (0, "")), (self_signed, (0, "")), (own_ca, (401, "Unauthorized"))):
        (tmp_path / "pair").write_bytes(pair.certificate + pair.key)
        assert await agent.call(path, certificate=tmp_path / "pair") == answer
    text = agent.log.read_text()[offset:]
    assert (text.count("TLS handshake failed"), text.count("call refused")) == (2, 3)


async def test_lists_show_the_tenants_own_pods_in_its_names(agent, request):
    blue = agent.tenants["blue"]
    own = {("shop", "box"), ("shop", "web"), (LONG, "box")}
    status, text = await agent.call("/pods", certificate=blue.certificate)
    pods = json.loads(text)["items"]
    assert status == 200
    assert {(one["metadata"]["namespace"], one["metadata"]["name"]) for one in pods} == own
    above = await blue.kubectl.get("-n", "shop", "pod", "box")
    assert above["metadata"]["uid"] in {one["metadata"]["uid"] for one in pods}
    assert blue.vc.root not in text
    is_kubelet = request.node.callspec.params["agent"] == "kubelet"
    for path in ("/runningpods", "/stats/summary", "/metrics/resource"):
        status, text = await agent.call(path, certificate=blue.certificate)
        assert (status, blue.vc.root in text) == (200 if is_kubelet else 501, False), path
        if is_kubelet:
            assert (LONG in text, "box" in text, "coredns" in text) == (True, True, False), path


async def test_each_call_is_counted_for_its_tenant_and_an_exec_is_in_the_log(agent):
    await agent.tenants["green"].kubectl("-n", "shop", "exec", "box", "--", "echo", "a-secret")
    root = agent.tenants["green"].vc.root
    [line] = [one for one in agent.log.read_text().splitlines() if "exec of pod" in one and root in one][-1:]
    assert "pod=shop/box" in line
    assert "command_length=12" in line
    assert "a-secret" not in agent.log.read_text()


async def test_the_certificate_of_the_vn_agent_is_verified_by_tenants(agent):
    running = await agent.operator.whole(agent.tenants["blue"].vc)
    command = Path(f"/proc/{running['kube-apiserver'].pid}/cmdline").read_bytes()
    assert b"--kubelet-certificate-authority=" in command


async def test_both_certificates_of_a_renewal_hold(agent):
    blue = agent.tenants["blue"]
    before = blue.certificate.read_bytes()
    await agent.direct("-n", blue.vc.root, "delete", "secret", "apiserver-ca")
    await agent.direct("annotate", "vc", "blue", f"look={time.monotonic()}", "--overwrite")

    async def is_renewed():
        found = await agent.operator.find(blue.vc.key)
        after = await agent.certificate(found, "renewed")
        hashes = tuple(certificates.fingerprint(one) for one in (after.read_bytes(), before))
        assert found.status.kubelet_client.hashes == hashes
        return after

    after = await eventually(is_renewed, within=60)
    for one in (blue.certificate, after):
        assert (await agent.call("/containerLogs/shop/box/main", certificate=one))[0] == 200

    async def has_logs():  # the API server closes its connections when it reads another certificate
        code, out, err = await blue.kubectl.run("-n", "shop", "logs", "box")
        assert (code, b"line 5 of blue" in out) == (0, True), err
        return True

    await eventually(has_logs, within=60)
    after.replace(blue.certificate)


async def test_a_tenant_with_too_many_connections_leaves_others_theirs_and_is_counted(lab):
    blue, green = lab.tenants["blue"], lab.tenants["green"]
    [metrics] = ports.choose(1, taken=(lab.port, lab.kubelet_port), seed=str(lab.folder))
    await lab.start("--tenant-connections", "1", "--metrics-addr", f"127.0.0.1:{metrics}")
    path = "/containerLogs/shop/box/main"
    follow = await blue.kubectl.start("-n", "shop", "logs", "-f", "box", "--tail=1")
    try:
        async with asyncio.timeout(60):
            assert await follow.stdout.readline()
        status, sentence = await lab.call(path, certificate=blue.certificate)
        assert (status, "too many connections" in sentence) == (429, True)
        assert (await lab.call(path, certificate=green.certificate))[0] == 200
        text = await asyncio.to_thread(fetched, f"http://127.0.0.1:{metrics}/metrics")
    finally:
        follow.terminate()
        await follow.communicate()
    labels = f'cluster="{blue.vc.root}"'
    assert f"hansa_vn_agent_connections{{{labels}}} 1.0" in text
    assert f'hansa_vn_agent_calls_total{{action="logs",answer="throttled",{labels}}} 1.0' in text


async def test_a_tenant_that_is_deleted_is_refused_at_once(lab):
    green = lab.tenants["green"]
    follow = await green.kubectl.start("-n", "shop", "logs", "-f", "box", "--tail=1")
    async with asyncio.timeout(60):
        assert await follow.stdout.readline()
    await lab.operator.meta.delete(VIRTUAL_CLUSTERS, "green", namespace="default")

    async def is_refused():
        assert (await lab.call("/containerLogs/shop/box/main", certificate=green.certificate))[0] in (0, 401)
        return True

    await eventually(is_refused, within=60)
    async with asyncio.timeout(60):
        await follow.communicate()
