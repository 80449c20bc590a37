"""Who may call the kubelet API of a virtual node: as with a kubelet. Nothing is said to others, and each is counted."""

import datetime

import pytest

import kubelet_calls
from hansa.kube import certificates
from hansa.kube.certificates import KeyPair, Subject
from kubelet_ways import UPPER

LOGS = "/containerLogs/overlay/box/main"
EXEC = "/exec/overlay/box/main?command=id&output=1"


@pytest.fixture
async def call(tensile):
    """Calls the node of tensile mode."""
    port = await tensile.port()

    async def make(path, **options):
        return await kubelet_calls.call(port, path, **options)

    return make


@pytest.fixture
def account(tensile):
    """Creates a service account with rights on subresources of nodes; its token."""

    async def create(name, *subresources, verbs="get"):
        kube = tensile.upper.kubectl
        await kube("create", "serviceaccount", name)
        if subresources:
            resources = ",".join(f"nodes/{one}" for one in subresources)
            await kube("create", "clusterrole", name, f"--verb={verbs}", f"--resource={resources}")
            await kube(
                "create", "clusterrolebinding", name, f"--clusterrole={name}", f"--serviceaccount=default:{name}"
            )
        return (await kube("create", "token", name)).strip()

    return create


def client_certificate(folder, authority, *subject):
    pair = certificates.issue(authority, Subject(*subject), datetime.datetime.now(datetime.UTC))
    (folder / subject[0]).write_bytes(pair.certificate + pair.key)
    return folder / subject[0]


async def counted(league, action, answer):
    name = f'hansa_kubelet_calls_total{{action="{action}",answer="{answer}"}} '
    lines = [line for line in (await league.page("/metrics")).splitlines() if line.startswith(name)]
    return float(lines[0].removeprefix(name)) if lines else 0.0


async def test_callers_without_a_right_get_nothing(call, account, league, tmp_path, clusters):
    before = await counted(league, "logs", "denied")
    assert await call(LOGS) == (401, "Unauthorized")
    assert await call(LOGS, token="made-up") == (401, "Unauthorized")
    token = await account("nobody")
    status, sentence = await call(LOGS, token=token)
    assert (status, "verb=get, resource=nodes, subresource(s)=[proxy]" in sentence) == (403, True)
    # What exists and what does not is the same to a caller without rights.
    for path in ("/configz", "/pods", "/containerLogs/overlay/nobody/main", "/no/such/path", "/metrics/resource"):
        assert (await call(path, token=token))[0] == 403, path
    # A user whom the cluster knows by a certificate has no right either.
    pki = clusters[UPPER].cluster.folder / "pki"
    authority = KeyPair((pki / "ca.crt").read_bytes(), (pki / "ca.key").read_bytes())
    status, sentence = await call(LOGS, certificate=client_certificate(tmp_path, authority, "mallory"))
    assert (status, "user=mallory" in sentence) == (403, True)
    assert await counted(league, "logs", "denied") == before + 5
    assert "call refused" in league.log.read_text()


async def test_a_certificate_of_another_authority_is_refused(call, league, tmp_path):
    before = await counted(league, "connect", "denied")
    now = datetime.datetime.now(datetime.UTC)
    other = certificates.authority("kubernetes", now)
    file = client_certificate(tmp_path, other, "kube-apiserver-kubelet-client", ("system:masters",))
    assert await call(LOGS, certificate=file) == (0, "")
    assert await counted(league, "connect", "denied") == before + 1
    assert "TLS handshake failed" in league.log.read_text()


async def test_parts_of_the_right_can_be_given_alone(call, account):
    for name, subresource, allowed in (
        ("scraper", "metrics", {"/metrics/resource"}),
        ("statistician", "stats", {"/stats/summary"}),
        ("lister", "pods", {"/pods", "/runningpods/"}),
        ("prober", "healthz", {"/healthz"}),
        ("reader", "proxy", {"/pods", "/runningpods/", "/healthz", LOGS}),
    ):
        token = await account(name, subresource)
        for path in ("/metrics/resource", "/stats/summary", "/pods", "/runningpods/", "/healthz", LOGS, EXEC):
            status, body = await call(path, token=token)
            assert status == (200 if path in allowed else 403), (name, path, body)
            assert body, "an allowed answer has content, a refusal says why"


async def test_a_caller_with_all_rights_reaches_only_what_is_served(call, account, federated, league):
    token = await account("operator", "proxy", "log", "metrics", "stats", verbs="get,create,delete")
    assert "line 5" in (await call(LOGS, token=token))[1]
    for path in (
        *(
            "/configz",
            "/logs/",
            "/metrics",
            "/debug/pprof/heap",
            "/run/overlay/box/main",
            "//containerLogs/overlay/box/main",
        ),
        *(
            "/containerLogs/kube-system/box/main",
            "/containerLogs/overlay/%2E%2E/main",
            "/containerLogs/overlay/../box/main",
        ),
        *(
            "/containerLogs/overlay%2Fbox/main",
            "/containerLogs/overlay/box%2Fmain",
            "/containerLogs/overlay/box/..%2Fmain",
        ),
        "/containerLogs/joint/box/main",  # a pod of another virtual node
        f"/containerLogs/joint/{federated.lower_names['box']}/main",
    ):
        status, sentence = await call(path, token=token)
        assert (status, "line 5" in sentence) == (404, False), path
    assert (await call(EXEC, token=token))[0] == 400  # no upgrade
    assert (await call("/pods", token=token, method="DELETE"))[0] == 405
    assert (await call(f"{LOGS}?command={'x' * 2**20}", token=token))[0] in (0, 431)
    assert await counted(league, "other", "not-found") >= 4
