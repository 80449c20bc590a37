"""Pods bound to a virtual node run in its lower cluster, and their status is synced up."""

import json

import programs
from eventually import eventually
from league import TOLERATION, condition, container, deployment, fresh_name, named, pod


async def test_a_deployment_runs_in_the_lower_clusters(league, upper_namespace):
    kube = league.upper.kubectl
    await kube("-n", upper_namespace, "apply", "-f", "-", stdin=json.dumps(deployment("web", 6)))
    await kube("-n", upper_namespace, "rollout", "status", "deployment/web", "--timeout", "120s")
    above = {one["metadata"]["name"]: one for one in await league.upper.all("pods", namespace=upper_namespace)}
    below = {
        one["metadata"]["name"]: (name, one)
        for name, member in league.lowers.items()
        for one in await member.all("pods", namespace=upper_namespace)
    }
    assert above.keys() == below.keys()
    assert len(above) == 6
    for name, upper in above.items():
        cluster, lower = below[name]
        assert upper["spec"]["nodeName"] == f"vn-{cluster}"
        assert lower["spec"]["nodeName"].startswith(cluster)
        assert lower["metadata"]["labels"]["virtual-pod"] == "true"
        assert "ownerReferences" not in lower["metadata"]
        for field in ("phase", "podIP", "podIPs", "hostIP", "startTime", "containerStatuses"):
            assert upper["status"].get(field) == lower["status"].get(field), field
        for kind in ("Ready", "ContainersReady", "Initialized", "PodScheduled"):
            assert condition(upper, kind)["status"] == "True", kind


async def test_conflicting_labels_are_removed_from_the_lower_pod_and_kept_in_the_upper_one(league, upper_namespace):
    labels = {"group.batch.scheduler.tencent.com": "g", "app": "x"}
    made = pod("p", on="hamburg", metadata={"labels": labels})
    await league.upper.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(made))
    upper = await league.phase(upper_namespace, "p")
    lower = await league.lowers["hamburg"].find("pod", "p", namespace=upper_namespace)
    assert "group.batch.scheduler.tencent.com" not in lower["metadata"]["labels"]
    assert json.loads(lower["metadata"]["annotations"]["tripped-labels"]) == {"group.batch.scheduler.tencent.com": "g"}
    assert labels.items() <= upper["metadata"]["labels"].items()


async def test_parked_constraints_apply_in_the_lower_cluster(league, upper_namespace):
    hamburg = league.lowers["hamburg"]
    node = (await hamburg.all("nodes"))[0]["metadata"]["name"]
    await hamburg.kubectl("label", "node", node, "disk=ssd", "--overwrite")
    parked = {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"key": "test", "operator": "Exists"}]}
    made = pod("p", on="hamburg", metadata={"annotations": {"clusterSelector": json.dumps(parked)}})
    await league.upper.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(made))
    await league.phase(upper_namespace, "p")
    lower = await hamburg.find("pod", "p", namespace=upper_namespace)
    assert lower["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert lower["spec"]["nodeName"] == node
    assert {"key": "test", "operator": "Exists"} in lower["spec"]["tolerations"]
    assert TOLERATION not in lower["spec"]["tolerations"]


async def test_the_reason_why_a_lower_pod_is_unschedulable_is_synced_up(league, upper_namespace):
    made = pod("p", on="hamburg", metadata={"annotations": {"clusterSelector": '{"nodeSelector":{"disk":"none"}}'}})
    await league.upper.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(made))

    async def reported():
        found = condition(await league.upper.find("pod", "p", namespace=upper_namespace), "PodScheduled")
        assert found["status"] == "False", found
        return found["reason"] == "Unschedulable" and "didn't match Pod's node affinity" in found["message"]

    await eventually(reported)


async def test_lower_events_are_mirrored_to_the_upper_pod(league, upper_namespace):
    made = pod("p", on="hamburg", metadata={"annotations": {"clusterSelector": '{"nodeSelector":{"disk":"none"}}'}})
    await league.upper.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(made))
    uid = (await league.upper.find("pod", "p", namespace=upper_namespace))["metadata"]["uid"]

    async def reported():
        events = await league.upper.all("events", namespace=upper_namespace)
        ours = [one for one in events if one["involvedObject"].get("uid") == uid]
        return any(one["reason"] == "FailedScheduling" and "node affinity" in one["message"] for one in ours)

    await eventually(reported)


async def test_pods_of_kube_system_are_served_like_all_others(league):
    name = fresh_name("system")
    await league.upper.kubectl("-n", "kube-system", "create", "-f", "-", stdin=json.dumps(pod(name, on="lubeck")))
    await league.phase("kube-system", name)
    await league.upper.kubectl("-n", "kube-system", "delete", "pod", name)
    await league.gone(league.lowers["lubeck"], "pod", name, namespace="kube-system")


async def test_each_container_has_a_status_of_its_own(league, upper_namespace):
    made = pod("p", on="lubeck", containers=[container("a"), container("b")], initContainers=[container("i")])
    await league.upper.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(made))
    upper = await league.phase(upper_namespace, "p")
    assert {one["name"] for one in upper["status"]["containerStatuses"]} == {"a", "b"}
    assert {one["name"] for one in upper["status"]["initContainerStatuses"]} == {"i"}


async def test_a_foreign_pod_of_the_same_name_is_left_alone_and_reported(league, upper_namespace):
    hamburg = league.lowers["hamburg"]
    await hamburg.kubectl("create", "namespace", upper_namespace)
    foreign = pod("p")
    await hamburg.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(foreign))
    before = await hamburg.find("pod", "p", namespace=upper_namespace)
    await league.upper.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(pod("p", on="hamburg")))

    async def reported():
        events = await league.upper.all("events", namespace=upper_namespace)
        return [one for one in events if one["type"] == "Warning" and "is not managed by Hansa" in one["message"]]

    await eventually(reported)
    after = await hamburg.find("pod", "p", namespace=upper_namespace)
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert "hansa.dev/upper" not in after["metadata"].get("labels", {})
    # By force: kwok deletes by name, and would take our pod of that name for the one that it is to end.
    await hamburg.kubectl("-n", upper_namespace, "delete", "pod", "p", "--force", "--grace-period=0")
    await league.phase(upper_namespace, "p", within=90)


async def test_a_pod_over_quota_gets_a_warning_and_runs_when_the_quota_allows_it(league, upper_namespace):
    lubeck = league.lowers["lubeck"]
    await lubeck.kubectl("create", "namespace", upper_namespace)
    await lubeck.kubectl("-n", upper_namespace, "create", "quota", "none", "--hard=pods=0")
    await eventually(lambda: _enforced(lubeck, upper_namespace))
    await league.upper.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(pod("p", on="lubeck")))

    async def reported():
        events = await league.upper.all("events", namespace=upper_namespace)
        return [one for one in events if one["type"] == "Warning" and "exceeded quota" in one["message"]]

    await eventually(reported)
    await lubeck.kubectl("-n", upper_namespace, "delete", "quota", "none")
    await league.phase(upper_namespace, "p", within=90)


async def _enforced(member, namespace):
    quota = await member.find("quota", "none", namespace=namespace)
    return "pods" in quota.get("status", {}).get("hard", {})


async def test_a_pod_denied_by_lower_admission_gets_a_warning_and_runs_when_it_is_admitted(league, upper_namespace):
    lubeck, name = league.lowers["lubeck"], fresh_name("closed")
    here = {"matchLabels": {"kubernetes.io/metadata.name": upper_namespace}}
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    policy = {"matchConstraints": {"namespaceSelector": here, "resourceRules": [rule]}}
    policy["validations"] = [{"expression": "false", "message": "closed today"}]
    binding = {"policyName": name, "validationActions": ["Deny"]}
    for kind, spec in (("ValidatingAdmissionPolicy", policy), ("ValidatingAdmissionPolicyBinding", binding)):
        head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}}
        await lubeck.kubectl.apply({**head, "spec": spec})
    await lubeck.kubectl("create", "namespace", upper_namespace)
    await eventually(lambda: _is_closed(lubeck, upper_namespace))
    await league.upper.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(pod("p", on="lubeck")))

    async def reported():
        events = await league.upper.all("events", namespace=upper_namespace)
        return [one for one in events if one["type"] == "Warning" and "closed today" in one["message"]]

    await eventually(reported)
    await lubeck.kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", name)
    await league.phase(upper_namespace, "p", within=180)  # no event announces it, so it is retried once a minute


async def _is_closed(member, namespace):
    """A policy holds a moment after it is made."""
    try:
        await member.kubectl("-n", namespace, "run", "try", "--image=x", "--dry-run=server")
    except programs.Refused as error:
        return "closed today" in str(error)
    return False


async def test_pods_of_excluded_namespaces_are_not_synced_down(league, upper_namespace, tmp_path):
    await league.stop()
    hamburg, excluded = league.lowers["hamburg"], fresh_name("excluded")
    await league.upper.kubectl("create", "namespace", excluded)
    flags = ["--nodename", "vn-excluding", "--kubeconfig", str(league.upper.cluster.kubeconfig)]
    flags += [
        "--client-kubeconfig",
        str(hamburg.cluster.kubeconfig),
        "--excluded-namespaces",
        f"kube-system,{excluded}",
    ]
    made = json.dumps(pod("p", nodeName="vn-excluding"))
    async with programs.hansa("virtual-node", *flags, log=tmp_path / "log"):
        for namespace in (excluded, "kube-system", upper_namespace):
            await league.upper.kubectl("-n", namespace, "create", "-f", "-", stdin=made)
        await league.phase(upper_namespace, "p")
        for namespace in (excluded, "kube-system"):
            assert await hamburg.find("pod", "p", namespace=namespace) is None
            await league.upper.kubectl("-n", namespace, "delete", "pod", "p", "--force", "--grace-period=0")
        await league.upper.kubectl("-n", upper_namespace, "delete", "pod", "p")
    await league.upper.kubectl("delete", "node/vn-excluding", f"namespace/{excluded}", "--wait=false")


async def test_two_upper_clusters_share_a_lower_one(league, upper_namespace, tmp_path):
    """lubeck is an upper cluster as well: its own pods run in hamburg, in a namespace of the same name."""
    lubeck, hamburg = league.lowers["lubeck"], league.lowers["hamburg"]
    await lubeck.kubectl("create", "namespace", upper_namespace)
    flags = ["--nodename", "vn-of-lubeck", "--kubeconfig", str(lubeck.cluster.kubeconfig)]
    lower = ["--client-kubeconfig", str(hamburg.cluster.kubeconfig)]
    second = pod("second", nodeName="vn-of-lubeck")
    async with programs.hansa("virtual-node", *flags, *lower, log=tmp_path / "log"):
        await lubeck.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(second))
        await league.upper.kubectl(
            "-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(pod("first", on="hamburg"))
        )
        await league.phase(upper_namespace, "first")
        await eventually(lambda: _runs(lubeck, upper_namespace, "second"))
        assert named(await hamburg.all("pods", namespace=upper_namespace)) == {"first", "second"}
        await lubeck.kubectl("-n", upper_namespace, "delete", "pod", "second")
        await league.gone(hamburg, "pod", "second", namespace=upper_namespace)
        assert await _runs(league.upper, upper_namespace, "first")
        assert await _runs(hamburg, upper_namespace, "first")
    await lubeck.kubectl("delete", "node", "vn-of-lubeck")


async def _runs(member, namespace, name):
    found = await member.find("pod", name, namespace=namespace)
    return found is not None and found["status"].get("phase") == "Running"
