"""`hansa status` on real clusters: what is wrong is found, and what is unreachable hides nothing else."""

import datetime
import time

import yaml

from command_runs import hansa
from hansa.federation import api as federation
from hansa.kube import resources
from hansa.kube.resource import Resource
from hansa.tenancy.api import VIRTUAL_CLUSTERS

CLUSTERS = Resource("cluster.x-k8s.io", "v1alpha4", "clusters", kind="Cluster")
TOPICS = {"leaders", "tenants", "super clusters", "virtual nodes", "targets", "sources", "warnings"}
MICRO = "%Y-%m-%dT%H:%M:%S.%fZ"


def ago(seconds):
    return (datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=seconds)).strftime(MICRO)


async def status(meta, *flags):
    return await hansa("status", "--kubeconfig", str(meta.cluster.kubeconfig), "-o", "json", *flags)


def unfinished(config, server):
    """A kubeconfig for another server."""
    changed = yaml.safe_load(config)
    changed["clusters"][0]["cluster"] = {"server": server, "insecure-skip-tls-verify": True}
    return yaml.safe_dump(changed)


async def test_a_cluster_without_anything_of_hansa_is_healthy(clusters):
    ran = await hansa("status", "--kubeconfig", str(clusters["r1"].cluster.kubeconfig))
    assert (ran.code, "nothing of Hansa found" in ran.out, "no problems" in ran.out) == (0, True, True), ran


async def test_everything_that_is_there_is_shown_with_its_problems(clusters, meta, make, super_secret):
    ready = {"conditions": [{"type": "Ready", "status": "True", "reason": "Up"}]}
    synced = [{"type": "Synced", "status": "True", "reason": "Syncing"}]
    spec = {"clusterVersionName": "any"}
    running = {"phase": "Running", "conditions": synced, "superClusters": ["r1"]}
    await make(VIRTUAL_CLUSTERS, "good", "default", spec=spec, status=running)
    refused = [{"type": "Synced", "status": "False", "reason": "Refused", "message": "no way"}]
    await make(VIRTUAL_CLUSTERS, "bad", "default", spec=spec, status={"phase": "Running", "conditions": refused})
    await make(federation.TARGETS, "t", "default", spec={"self": True}, status={"conditions": []})
    await make(federation.TARGETS, "u", "default", spec={"self": True}, status=ready | {"node": "vn"})
    await make(federation.SOURCES, "s", "default", spec={"userName": "anna"}, status=ready)
    await make(
        resources.NODES, "vn", metadata={"labels": {"hansa.dev/virtual-node": "true", "clusterID": "c"}}, status=ready
    )
    lease = {"holderIdentity": "me", "leaseDurationSeconds": 15}
    await make(resources.LEASES, "hansa-agent", "kube-system", spec=lease | {"renewTime": ago(1)})
    await make(
        resources.LEASES, "vc-scheduler-leaderelection-lock", "default", spec=lease | {"renewTime": ago(300_000)}
    )
    await make(CLUSTERS, "r1", "default", status={"phase": "Provisioned"})
    await super_secret("r1", clusters["r1"].cluster.kubeconfig.read_text())
    happened = {"type": "Warning", "reason": "Lost", "message": "a\nb", "lastTimestamp": ago(5)[:19] + "Z"}
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    await make(resources.EVENTS, "e", "default", source={"component": "hansa-agent"}, involvedObject=about, **happened)

    ran = await status(meta)
    [cluster] = ran.json["clusters"]
    sections = cluster["sections"]
    assert {title for title, found in sections.items() if not found["unread"]} == TOPICS
    tenants = {one["tenant"]: one for one in sections["tenants"]["items"]}
    assert (tenants["default/good"]["super-clusters"], tenants["default/good"]["problem"]) == ("r1", "")
    [super_cluster] = sections["super clusters"]["items"]
    assert super_cluster["version"] == await clusters["r1"].client.version()
    assert super_cluster["problem"] == ""
    [node] = sections["virtual nodes"]["items"]
    assert (node["lower-cluster"], node["ready"], node["problem"]) == ("c", "True", "")
    [warning] = sections["warnings"]["items"]
    assert (warning["object"], warning["message"], warning["problem"]) == ("Pod default/p", "a b", "")
    assert {one["source"]: one["account"] for one in sections["sources"]["items"]} == {"default/s": "anna"}
    problems = sorted(one["problem"] for one in ran.json["problems"])
    lost = "no process leads: the Lease was renewed 3d ago, and lasts 15 s"
    assert [one.partition(";")[0] for one in problems] == [
        f"leaders: default/vc-scheduler-leaderelection-lock: {lost}",
        "tenants: default/bad: Synced: Refused: no way",
    ], problems
    assert (ran.code, ran.json["healthy"]) == (1, False)


async def test_what_is_unreachable_hides_nothing_else_and_costs_its_deadline_only(
    clusters, meta, make, super_secret, silent_server
):
    config = clusters["r1"].cluster.kubeconfig.read_text()
    await make(CLUSTERS, "r1", "default", status={"phase": "Provisioned"})
    await super_secret("r1", config)
    await make(CLUSTERS, "deaf", "default", status={"phase": "Provisioned"})
    await super_secret("deaf", unfinished(config, silent_server))
    await make(CLUSTERS, "off", "default", status={"phase": "Provisioned"})
    await super_secret("off", unfinished(config, "https://127.0.0.1:1"))
    await make(CLUSTERS, "keyless", "default", status={"phase": "Provisioned"})
    began = time.monotonic()
    ran = await status(meta, "--context", "meta", "--context", "nowhere", "--timeout", "3")
    took = time.monotonic() - began
    named = {
        one["super-cluster"]: one["problem"] for one in ran.json["clusters"][0]["sections"]["super clusters"]["items"]
    }
    assert named["default/r1"] == ""
    assert "1.8 s" in named["default/deaf"]
    assert "cannot be reached" in named["default/off"]
    assert '"keyless" not found' in named["default/keyless"]
    assert 'there is no context "nowhere"' in ran.json["clusters"][1]["unreachable"]
    assert ran.code == 1
    assert took < 20, "four things that do not answer are waited for at the same time"


async def test_a_server_that_never_answers_is_a_problem(clusters, tmp_path, silent_server):
    path = tmp_path / "kubeconfig"
    path.write_text(unfinished(clusters["r1"].cluster.kubeconfig.read_text(), silent_server))
    ran = await hansa("status", "--kubeconfig", str(path), "--timeout", "1")
    assert (ran.code, "gave no answer in 1 s" in ran.out) == (1, True), ran


async def test_a_right_that_is_missing_hides_one_topic_only(make, account):
    await make(federation.SOURCES, "s", "default", spec={"userName": "anna"}, status={"conditions": []})
    rules = [{"apiGroups": ["multicluster.admiralty.io"], "resources": ["*"], "verbs": ["list"]}]
    path = await account("reader", rules)
    ran = await hansa("status", "--kubeconfig", str(path), "-o", "json")
    sections = ran.json["clusters"][0]["sections"]
    assert [one["source"] for one in sections["sources"]["items"]] == ["default/s"]
    assert sections["sources"]["unread"] == ""
    assert "forbidden" in sections["tenants"]["unread"]
    assert ran.code == 1
