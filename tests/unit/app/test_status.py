"""What `hansa status` says about single objects."""

import datetime

import pytest

from hansa.app.status import lags, leaders, pool, section, tenants, virtual_nodes, warnings, workloads
from hansa.app.status.reading import Reader
from hansa.control.sharding import shards
from hansa.kube.client import Client
from hansa.kube.credentials import Credentials
from hansa.kube.credentials.login import Login
from hansa.kube.objects import Object

NOW = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)


@pytest.fixture
def reader():
    credentials = Credentials(lambda: Login(server="https://example.com", origin="a test"))
    return Reader(Client(credentials, user_agent="test"), NOW, 1.0)


def before(seconds):
    return (NOW - datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def vc(*conditions, phase="", age=1000, **metadata):
    return Object.of(
        {
            "metadata": {"namespace": "default", "name": "a", "creationTimestamp": before(age), **metadata},
            "status": {"phase": phase, "conditions": list(conditions)},
        }
    )


def condition(kind, status, reason="", message="", since=0):
    when = {"lastTransitionTime": before(since)}
    return {"type": kind, "status": status, "reason": reason, "message": message, **when}


SYNCED, READY = condition("Synced", "True"), condition("Ready", "True")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (vc(READY, SYNCED, phase="Running"), ""),
        (vc(age=5), ""),
        (vc(), "no vc-manager has reconciled it; see whether one is running in this cluster"),
        (vc(phase="Pending", age=100), ""),
        (vc(phase="Pending", age=1000), "has been Pending for 16m"),
        (vc(condition("Ready", "False", "Images", "no image"), phase="Pending"), "Ready: Images: no image"),
        (vc(condition("Ready", "False", "Broken"), phase="Error", age=1), "Ready: Broken"),
        (vc(condition("Ready", "True", since=5), phase="Running"), ""),
        (
            vc(condition("Ready", "True", since=500), phase="Running"),
            "no vc-syncer serves it; see whether one is running",
        ),
        (vc(condition("Synced", "False", "Unreachable", "x"), phase="Running"), "Synced: Unreachable: x"),
        (vc(SYNCED, condition("WithinLimits", "False", "LimitReached"), phase="Running"), "WithinLimits: LimitReached"),
        (vc(SYNCED, condition("InvalidAnnotations", "True"), phase="Running"), "InvalidAnnotations: no reason given"),
        (vc(SYNCED, condition("Unknown", "False"), phase="Running"), ""),
        (vc(SYNCED, phase="Running", deletionTimestamp=before(5), finalizers=["f"]), ""),
        (
            vc(SYNCED, phase="Running", deletionTimestamp=before(700), finalizers=["f"]),
            "has been terminating for 11m, held by finalizers f",
        ),
    ],
)
def test_a_tenant_has_a_problem_when_a_condition_is_bad_for_too_long(given, problem, reader):
    assert tenants.problem(given, reader) == problem


def lease(name="vc-manager-leaderelection-lock", holder="a", age=1.0, duration=15, **more):
    renewed = {"renewTime": before(age)} if age is not None else {}
    spec = {"holderIdentity": holder, "leaseDurationSeconds": duration, **renewed}
    return Object.of({"metadata": {"namespace": "kube-system", "name": name, **more}, "spec": spec})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (lease(), ""),
        (lease(age=-30), ""),  # the clock of its holder is ahead
        (lease(age=18), ""),
        (lease(age=100), "no process leads: the Lease was renewed 100s ago, and lasts 15 s;"),
        (lease(age=None), "no process leads: the Lease was renewed never ago"),
        (lease(holder=""), "no process leads, since the last one ended"),
    ],
)
def test_an_election_without_a_leader_is_a_problem(given, words, reader):
    found = leaders.problem(given, reader)
    assert found.startswith(words)
    assert bool(found) is bool(words)


def test_leases_of_others_and_those_that_are_no_elections_are_not_shown():
    replica = lease("vc-syncer-a", labels={"hansa.dev/shares": "vc-syncer"})
    ours = [lease(), lease("hansa-agent"), lease("vc-syncer-leaderelection-lock"), replica]
    others = [
        *(lease("kube-scheduler"), lease("hansa-fence"), lease("-leaderelection-lock"), lease("node-1")),
        lease("hansa-reaches-r1", labels={"hansa.dev/reaches": "r1"}),
    ]
    assert [leaders.is_ours(one) for one in [*ours, *others]] == [True] * 4 + [False] * 5


def test_a_tenant_shows_the_replica_that_claims_its_shard():
    served = Object.of({**vc().to_dict(), "status": {"clusterNamespace": "default-abc-blue"}})
    mine = shards.owned("one", ["one", "other"])
    owner = "one" if mine >> shards.shard_of("default-abc-blue") & 1 else "other"
    leases = [
        lease(name, annotations={"hansa.dev/claims": shards.text(found)})
        for name, found in (("one", mine), ("other", shards.ALL & ~mine))
    ]
    assert tenants.replicas(served, leases) == [owner]


def test_a_virtual_node_without_heartbeat_is_a_problem_although_its_condition_is_good(reader):
    node = Object.of({"metadata": {"name": "vn"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    assert virtual_nodes.row(node, lease("vn", duration=40), reader).problem == ""
    found = virtual_nodes.row(node, lease("vn", age=200, duration=40), reader).problem
    assert found.startswith("no heartbeat for 3m: the program that runs it has ended")


def test_a_virtual_node_that_is_not_ready_says_why(reader):
    ready = {"type": "Ready", "status": "False", "reason": "Lost", "message": "no answer"}
    node = Object.of({"metadata": {"name": "vn"}, "status": {"conditions": [ready]}})
    assert virtual_nodes.row(node, None, reader).problem == "not ready: Lost: no answer"


def cluster(phase="Provisioned", **annotations):
    names = {f"hansa.dev/{name}": value for name, value in annotations.items()}
    return Object.of({"metadata": {"name": "r1", "annotations": names}, "status": {"phase": phase}})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((cluster(), lease(), lease()), ""),
        ((cluster(), None, None), ""),
        ((cluster(leaving="true"), None, None), "is leaving the pool"),
        ((cluster("Failed"), None, None), "has phase Failed"),
        ((cluster(""), None, None), "has no phase"),
        ((cluster(), lease(age=80, duration=60), None), "its fence was renewed 80s ago, and lasts 60 s"),
        ((cluster(), lease(), lease(age=200)), "no vc-syncer has reached it for 3m"),
    ],
)
def test_a_super_cluster_without_fence_or_report_is_a_problem(given, words, reader):
    found = pool.problem_of(*given, reader)
    assert found.startswith(words)
    assert bool(found) is bool(words)


def workload(image="hansa:1", kind="Deployment", args=(), age=1000, **status):
    template = {"spec": {"containers": [{"name": "c", "image": image, "args": list(args)}]}}
    metadata = {"namespace": "vc-manager", "name": "a", "creationTimestamp": before(age)}
    return Object.of({"kind": kind, "metadata": metadata, "spec": {"template": template}, "status": status})


def test_components_are_found_by_their_image():
    ours = ["hansa:1", "example.com:5000/team/hansa:1", "hansa@sha256:0", "ghcr.io/hansa"]
    assert [workloads.image(workload(one)) for one in ours] == ours
    assert not any(workloads.image(workload(one)) for one in ("hansard:1", "example.com/hansa/nginx", ""))


def test_a_component_whose_pods_are_not_ready_is_a_problem_after_its_start(reader):
    assert workloads.row(workload(age=10), reader).problem == ""
    assert workloads.row(workload(readyReplicas=1), reader).problem == ""
    assert workloads.row(workload(), reader).problem.startswith("0 of 1 pods are ready")
    found = workload(kind="DaemonSet", numberReady=1, desiredNumberScheduled=2)
    assert workloads.row(found, reader).problem.startswith("1 of 2 pods are ready")


@pytest.mark.parametrize(
    ("args", "port"),
    [
        (("vc-manager", "--metrics-addr=0.0.0.0:8080"), "8080"),
        (("--metrics-addr", "x:1"), "1"),
        ((), ""),
        (("--x",), ""),
    ],
)
def test_the_port_of_metrics_is_read_from_the_arguments(args, port):
    assert lags.metrics_port(workload(args=args)) == port


def test_queues_are_summed_up():
    page = """
hansa_queue_depth{queue="a",group="x"} 2
hansa_queue_depth{queue="b",group=""} 3
hansa_queue_longest_work_seconds{queue="a"} 7.5
hansa_queue_longest_work_seconds{queue="b"} -0.1
"""
    assert lags.figures(page) == (5.0, 7.5)
    assert lags.figures("") == (0.0, 0.0)


def test_warnings_of_other_components_are_left_out(reader):
    def event(component, **more):
        return Object.of({"metadata": {"name": "e"}, "source": {"component": component}, **more})

    names = {"vc-manager": True, "hansa-vc-syncer": True, "kubelet": False, "": False}
    assert {name: warnings.is_ours(event(name)) for name in names} == names
    assert warnings.last(event("x", lastTimestamp=before(70), eventTime=None), reader) == 70


@pytest.mark.parametrize(
    ("seconds", "text"), [(None, "never"), (-1, "0s"), (119, "119s"), (120, "2m"), (7300, "2h"), (86400 * 3, "3d")]
)
def test_ages_have_one_unit(seconds, text):
    assert section.age(seconds) == text


def test_a_time_without_zone_or_that_is_none_is_unknown():
    assert section.seconds_since("soon", NOW) is section.seconds_since("2026-01-01T00:00:00", NOW) is None


def test_an_invalid_tenant_is_shown_and_hides_no_other(reader):
    bad = Object.of({"metadata": {"namespace": "default", "name": "a"}, "spec": {"pkiExpireDays": "soon"}})
    assert tenants.row(bad, reader).cells[0] == "default/a"
