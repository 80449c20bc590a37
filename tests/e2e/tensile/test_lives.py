"""Pods change, end and get lost on both sides; both sides always converge."""

import json

from eventually import eventually
from league import container, deployment, named, pod


async def running(league, namespace, made):
    await league.upper.kubectl("-n", namespace, "create", "-f", "-", stdin=json.dumps(made))
    return await league.phase(namespace, made["metadata"]["name"])


async def below(league, namespace, name, look, cluster="hamburg"):
    async def found():
        lower = await league.lowers[cluster].find("pod", name, namespace=namespace)
        assert lower is not None
        assert look(lower), lower["spec"]
        return lower

    return await eventually(found)


async def test_images_labels_and_annotations_follow(league, upper_namespace):
    await running(league, upper_namespace, pod("p", on="hamburg", metadata={"labels": {"a": "1", "gone": "x"}}))
    kube = league.upper.kubectl
    await kube("-n", upper_namespace, "set", "image", "pod/p", "main=example.com/app:2")
    await kube("-n", upper_namespace, "label", "pod", "p", "a=2", "gone-", "--overwrite")
    await kube("-n", upper_namespace, "annotate", "pod", "p", "note=yes")
    lower = await below(
        league, upper_namespace, "p", lambda one: one["metadata"]["annotations"].get("note") == "yes"
        and one["spec"]["containers"][0]["image"] == "example.com/app:2"
        and one["metadata"]["labels"].get("a") == "2"
    )  # fmt: skip
    assert "gone" not in lower["metadata"]["labels"]
    assert lower["metadata"]["labels"]["virtual-pod"] == "true"


async def test_deadlines_and_tolerations_follow(league, upper_namespace):
    await running(league, upper_namespace, pod("p", on="hamburg"))
    patch = [
        {"op": "add", "path": "/spec/activeDeadlineSeconds", "value": 3600},
        {"op": "add", "path": "/spec/tolerations/-", "value": {"key": "late", "operator": "Exists"}},
    ]
    await league.upper.kubectl("-n", upper_namespace, "patch", "pod", "p", "--type=json", "-p", json.dumps(patch))
    await below(
        league, upper_namespace, "p", lambda one: one["spec"].get("activeDeadlineSeconds") == 3600
        and {"key": "late", "operator": "Exists"} in one["spec"]["tolerations"]
    )  # fmt: skip


async def test_tolerations_added_later_are_synced_although_others_are_parked(league, upper_namespace):
    parked = {"annotations": {"clusterSelector": '{"tolerations":[{"key":"early","operator":"Exists"}]}'}}
    await running(league, upper_namespace, pod("p", on="hamburg", metadata=parked))
    patch = [{"op": "add", "path": "/spec/tolerations/-", "value": {"key": "late", "operator": "Exists"}}]
    await league.upper.kubectl("-n", upper_namespace, "patch", "pod", "p", "--type=json", "-p", json.dumps(patch))
    keys = {"early", "late"}
    await below(league, upper_namespace, "p", lambda one: keys <= {t.get("key") for t in one["spec"]["tolerations"]})


async def test_a_resize_in_place_follows(league, upper_namespace):
    small = {"requests": {"cpu": "100m"}}
    await running(league, upper_namespace, pod("p", on="hamburg", containers=[container(resources=small)]))
    # A pod can be resized only if its kubelet reports the resources of its containers; kwok does not.
    await write_lower_status(
        league, upper_namespace, "p", lambda status: status["containerStatuses"][0].update(resources=small)
    )
    await eventually(lambda: is_resizable(league, upper_namespace, "p"))
    patch = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "200m"}}}]}}
    await league.upper.kubectl(
        "-n", upper_namespace, "patch", "pod", "p", "--subresource", "resize", "-p", json.dumps(patch)
    )
    await below(
        league, upper_namespace, "p", lambda one: one["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "200m"
    )


async def is_resizable(league, namespace, name):
    upper = await league.upper.find("pod", name, namespace=namespace)
    return upper["status"]["containerStatuses"][0].get("resources")


async def write_lower_status(league, namespace, name, change, cluster="hamburg"):
    """Write a lower pod's status, as its kubelet would."""
    lower = await league.lowers[cluster].find("pod", name, namespace=namespace)
    change(lower["status"])
    patch = json.dumps({"status": lower["status"]})
    await league.lowers[cluster].kubectl(
        "-n", namespace, "patch", "pod", name, "--subresource", "status", "--type=merge", "-p", patch
    )


async def test_ephemeral_containers_follow(league, upper_namespace):
    await running(league, upper_namespace, pod("p", on="hamburg"))
    debug = {"spec": {"ephemeralContainers": [container("debugger")]}}
    await league.upper.kubectl(
        "-n", upper_namespace, "patch", "pod", "p", "--subresource", "ephemeralcontainers", "-p", json.dumps(debug)
    )
    await below(league, upper_namespace, "p", lambda one: named_containers(one) == ["debugger"])


def named_containers(one):
    return [each["name"] for each in one["spec"].get("ephemeralContainers", [])]


async def test_a_deleted_pods_copy_is_deleted_with_the_same_grace_period_before_the_upper_pod(league, upper_namespace):
    hamburg = league.lowers["hamburg"]
    # A finalizer holds the lower pod, so that it can be looked at while it leaves.
    await running(league, upper_namespace, pod("p", on="hamburg", terminationGracePeriodSeconds=77))
    await hamburg.kubectl("-n", upper_namespace, "patch", "pod", "p", "-p", '{"metadata":{"finalizers":["test/hold"]}}')
    await league.upper.kubectl("-n", upper_namespace, "delete", "pod", "p", "--grace-period", "41", "--wait=false")
    leaving = await below(league, upper_namespace, "p", lambda one: "deletionTimestamp" in one["metadata"])
    deletions = [
        request
        for request in hamburg.requests()
        if request["verb"] == "delete" and request["objectRef"].get("name") == "p"
        and request["objectRef"].get("namespace") == upper_namespace
    ]  # fmt: skip
    assert len(deletions) <= 1, "one deletion is enough"
    assert await league.upper.find("pod", "p", namespace=upper_namespace), "the upper pod waits for the lower one"
    assert leaving["metadata"]["deletionGracePeriodSeconds"] in (0, 41), "0 when the kubelet below was done with it"
    await hamburg.kubectl("-n", upper_namespace, "patch", "pod", "p", "-p", '{"metadata":{"finalizers":null}}')
    await league.gone(league.upper, "pod", "p", namespace=upper_namespace)


async def test_a_lost_lower_pod_is_replaced_by_its_controller(league, upper_namespace):
    kube = league.upper.kubectl
    await kube("-n", upper_namespace, "apply", "-f", "-", stdin=json.dumps(deployment("web", 2, on="hamburg")))
    await kube("-n", upper_namespace, "rollout", "status", "deployment/web", "--timeout", "120s")
    lost = (await league.upper.all("pods", namespace=upper_namespace))[0]["metadata"]
    await league.lowers["hamburg"].kubectl("-n", upper_namespace, "delete", "pod", lost["name"], "--wait=false")

    async def replaced():
        pods = await league.upper.all("pods", namespace=upper_namespace)
        assert lost["name"] not in named(pods)
        return len(pods) == 2 and all(one["status"].get("phase") == "Running" for one in pods)

    await eventually(replaced)


async def test_an_evicted_lower_pod_ends_the_upper_one(league, upper_namespace):
    hamburg = league.lowers["hamburg"]
    await running(league, upper_namespace, pod("p", on="hamburg"))
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p", "namespace": upper_namespace}}
    path = f"/api/v1/namespaces/{upper_namespace}/pods/p/eviction"
    await hamburg.kubectl("create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))
    await league.gone(league.upper, "pod", "p", namespace=upper_namespace)


async def test_a_finished_pod_never_runs_again(league, upper_namespace):
    hamburg = league.lowers["hamburg"]
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "once"},
        "spec": {"template": {"spec": pod("x", on="hamburg", restartPolicy="Never")["spec"]}},
    }
    await league.upper.kubectl("-n", upper_namespace, "apply", "-f", "-", stdin=json.dumps(job))
    await finish(league, upper_namespace)
    await league.upper.kubectl("-n", upper_namespace, "wait", "job/once", "--for=condition=Complete", "--timeout=120s")
    [done] = await league.upper.all("pods", namespace=upper_namespace)
    name = done["metadata"]["name"]
    await hamburg.kubectl("-n", upper_namespace, "delete", "pod", name)
    await league.upper.kubectl("-n", upper_namespace, "annotate", "pod", name, "look=again")
    await running(league, upper_namespace, pod("later", on="hamburg"))
    assert named(await hamburg.all("pods", namespace=upper_namespace)) == {"later"}
    still = await league.upper.find("pod", name, namespace=upper_namespace)
    assert still["status"]["phase"] == "Succeeded"
    await league.upper.kubectl("-n", upper_namespace, "delete", "pod", name)


async def finish(league, namespace):
    """Let the only pod complete, as its kubelet would report it; kwok completes only pods that a Job owns."""

    async def is_running():
        [found] = await league.upper.all("pods", namespace=namespace)  # none before the Job controller makes it
        return found["status"].get("phase") == "Running" and found["metadata"]["name"]

    def completed(status):
        ended = {
            "exitCode": 0,
            "reason": "Completed",
            "startedAt": status["startTime"],
            "finishedAt": status["startTime"],
        }
        status["phase"] = "Succeeded"
        status["containerStatuses"][0].update(ready=False, state={"terminated": ended})

    await write_lower_status(league, namespace, await eventually(is_running), completed)


async def test_deletions_made_while_the_program_was_down_are_carried_out_at_its_start(league, upper_namespace):
    hamburg = league.lowers["hamburg"]
    for name in ("forced", "leaving", "stays"):
        await running(league, upper_namespace, pod(name, on="hamburg"))
    await league.kill()
    kube = league.upper.kubectl
    await kube("-n", upper_namespace, "delete", "pod", "forced", "--force", "--grace-period", "0")
    await kube("-n", upper_namespace, "delete", "pod", "leaving", "--wait=false")
    await league.start()
    await league.gone(hamburg, "pod", "forced", namespace=upper_namespace)
    await league.gone(hamburg, "pod", "leaving", namespace=upper_namespace)
    await league.gone(league.upper, "pod", "leaving", namespace=upper_namespace)
    assert await hamburg.find("pod", "stays", namespace=upper_namespace)


async def test_a_pod_that_is_made_anew_under_its_old_name_is_another_one(league, upper_namespace):
    first = await running(league, upper_namespace, pod("p", on="hamburg"))
    await league.upper.kubectl("-n", upper_namespace, "delete", "pod", "p", "--force", "--grace-period", "0")
    second = await running(league, upper_namespace, pod("p", on="hamburg"))
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    origin = "hansa.dev/upper-uid"
    await below(
        league, upper_namespace, "p", lambda one: one["metadata"]["annotations"][origin] == second["metadata"]["uid"]
    )
