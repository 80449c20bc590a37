"""The webhook and the virtual nodes together: constraints hold in the lower clusters, and pods follow their claims."""

import json

from eventually import eventually
from hansa.admission.constraints import REQUIRED
from league import TOLERATION, fresh_name, pod


async def test_constraints_hold_where_the_pod_runs(league, upper_namespace, webhook):
    hamburg = league.lowers["hamburg"]
    node = (await hamburg.all("nodes"))[1]["metadata"]["name"]
    await hamburg.kubectl("label", "node", node, "rack=7", "--overwrite")
    await hamburg.kubectl("taint", "node", node, "quiet=yes:NoSchedule", "--overwrite")
    required = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rack", "operator": "In", "values": ["7"]}]}]}
    made = pod(
        "p",
        affinity={"nodeAffinity": {REQUIRED: required}},
        nodeSelector={"clusterID": "hamburg"},
        tolerations=[TOLERATION, {"key": "quiet", "operator": "Exists"}],
    )
    await league.upper.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(made))
    upper = await league.phase(upper_namespace, "p")
    assert upper["spec"]["nodeName"] == "vn-hamburg"
    assert "affinity" not in upper["spec"]
    lower = await hamburg.find("pod", "p", namespace=upper_namespace)
    assert lower["spec"]["nodeName"] == node
    assert lower["spec"]["affinity"] == made["spec"]["affinity"]
    assert "nodeSelector" not in lower["spec"]
    await hamburg.kubectl("taint", "node", node, "quiet-")


async def test_terms_may_ask_for_other_nodes_in_other_clusters(league, upper_namespace, webhook):
    terms, wanted = [], {}
    for number, (cluster, member) in enumerate(league.lowers.items()):
        wanted[cluster] = (await member.all("nodes"))[number]["metadata"]["name"]
        await member.kubectl("label", "node", wanted[cluster], f"row={cluster}", "--overwrite")
        conditions = [{"key": key, "operator": "In", "values": [cluster]} for key in ("clusterID", "row")]
        terms.append({"matchExpressions": conditions})
    required = {REQUIRED: {"nodeSelectorTerms": terms}}
    for cluster, node in wanted.items():
        made = pod(f"p-{cluster}", on=cluster, affinity={"nodeAffinity": required})
        await league.upper.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(made))
        await league.phase(upper_namespace, f"p-{cluster}")
        lower = await league.lowers[cluster].find("pod", f"p-{cluster}", namespace=upper_namespace)
        assert lower["spec"]["nodeName"] == node
        [term] = lower["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
        assert [one["key"] for one in term["matchExpressions"]] == ["row"]


async def test_a_toleration_that_is_added_later_applies_in_the_lower_cluster(league, upper_namespace, webhook):
    made = pod("p", nodeSelector={"clusterID": "lubeck"})
    await league.upper.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(made))
    await league.phase(upper_namespace, "p")
    late = {"key": "late", "operator": "Exists"}
    patch = [{"op": "add", "path": "/spec/tolerations/-", "value": late}]
    await league.upper.kubectl("-n", upper_namespace, "patch", "pod", "p", "--type=json", "-p", json.dumps(patch))

    async def followed():
        lower = await league.lowers["lubeck"].find("pod", "p", namespace=upper_namespace)
        return late in lower["spec"]["tolerations"]

    await eventually(followed)


async def test_a_claim_with_a_lower_volume_places_pods_in_that_cluster(league, upper_namespace, webhook):
    """An upper scheduler that does not look at volumes, as tensile-kube demands it, needs the webhook for that."""
    lubeck, kube, disk = league.lowers["lubeck"], league.upper.kubectl, fresh_name("disk")
    asked = {"accessModes": ["ReadWriteOnce"], "storageClassName": ""}
    offered = {**asked, "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/disk"}}
    claim = {**asked, "resources": {"requests": {"storage": "1Gi"}}}
    await lubeck.kubectl.apply(described("PersistentVolume", disk, offered))
    await kube.apply(described("PersistentVolumeClaim", "data", claim, namespace=upper_namespace))
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    first, second = pod("first", nodeName="vn-lubeck", volumes=volumes), pod("second", volumes=volumes)
    await kube("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(first))
    await league.phase(upper_namespace, "first", within=90)

    async def noted():
        above = await league.upper.find("pvc", "data", namespace=upper_namespace)
        return above["metadata"]["annotations"].get("volume.kubernetes.io/selected-node") == "vn-lubeck"

    await eventually(noted)

    async def pinned():  # the claim is in the webhook's cache a moment later
        await kube("-n", upper_namespace, "delete", "pod", "second", "--ignore-not-found")
        await kube("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(second))
        upper = await league.upper.find("pod", "second", namespace=upper_namespace)
        return upper["spec"].get("nodeSelector") == {"kubernetes.io/hostname": "vn-lubeck"}

    await eventually(pinned)
    assert (await league.phase(upper_namespace, "second"))["spec"]["nodeName"] == "vn-lubeck"
    lower = await lubeck.find("pod", "second", namespace=upper_namespace)
    assert "nodeSelector" not in lower["spec"]
    await kube("-n", upper_namespace, "delete", "pod", "first", "second")
    await kube("-n", upper_namespace, "delete", "pvc", "data")
    await league.gone(lubeck, "pvc", "data", namespace=upper_namespace)
    await lubeck.kubectl("delete", "pv", disk)


def described(kind, name, spec, **metadata):
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}
