"""What creates pods: StatefulSets, CronJobs, users; deletion either way; two sources that share a namespace."""

from eventually import eventually
from federation import a_deployment, elected
from hansa.model import keys
from league import PATIENCE, named


def template_of(pod):
    return {"metadata": {k: v for k, v in pod["metadata"].items() if k != "name"}, "spec": pod["spec"]}


def a_stateful_set(name, replicas):
    template = template_of(elected(name))
    spec = {"replicas": replicas, "serviceName": name, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": spec}


def a_cron_job(name):
    template = template_of(elected(name, restartPolicy="Never"))
    spec = {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": template, "completions": 2}}}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec}


async def test_pods_of_a_stateful_set_keep_their_names_and_are_replaced_in_order(federation, namespace, nodes, pods):
    await pods.apply(a_stateful_set("db", 3))
    kube = pods.east.kubectl
    await kube("-n", namespace, "rollout", "status", "statefulset/db", "--timeout=120s")
    delegates = [one for member in (pods.east, pods.west) for one in await federation.delegates(member, namespace)]
    assert {one["spec"]["hostname"] for one in delegates} == {"db-0", "db-1", "db-2"}
    assert {one["spec"]["subdomain"] for one in delegates} == {"db"}
    before = await pods.east.find("pod", "db-1", namespace=namespace)
    [lower] = [one for one in delegates if one["spec"]["hostname"] == "db-1"]
    member = pods.east if before["spec"]["nodeName"] == nodes["east"] else pods.west
    await member.kubectl("-n", namespace, "delete", "pod", lower["metadata"]["name"], "--wait=false")

    async def replaced():
        after = await pods.east.find("pod", "db-1", namespace=namespace)
        assert after is not None
        assert after["metadata"]["uid"] != before["metadata"]["uid"]
        return after["status"].get("phase") == "Running"

    assert await eventually(replaced, within=PATIENCE)
    await pods.delete("statefulset", "db")
    await pods.have_counts(0, 0)


async def test_a_cron_jobs_job_completes_and_a_bare_pod_is_deleted_with_its_delegate(
    federation, namespace, nodes, pods
):
    await pods.apply(a_cron_job("nightly"), elected("bare", terminationGracePeriodSeconds=7))
    await pods.east.kubectl("-n", namespace, "create", "job", "now", "--from=cronjob/nightly")
    await pods.running("bare")
    [bare] = [
        one
        for member in (pods.east, pods.west)
        for one in await federation.delegates(member, namespace)
        if one["metadata"]["annotations"][keys.PARENT_NAME] == "bare"
    ]
    assert bare["spec"]["terminationGracePeriodSeconds"] == 7
    await pods.delete("pod", "bare")

    async def finish():
        for member in (pods.east, pods.west):
            for one in await federation.delegates(member, namespace):
                if one["status"]["phase"] == "Running":
                    await member.kubectl(
                        *("-n", namespace, "patch", "pod", one["metadata"]["name"], "--subresource=status"),
                        *("--type=merge", "-p", '{"status": {"phase": "Succeeded"}}'),
                    )
        job = await pods.east.find("job", "now", namespace=namespace)
        assert job["status"].get("succeeded") == 2, job["status"]
        return True

    assert await eventually(finish, within=PATIENCE)
    await pods.gone("pod", "bare", namespace=namespace)
    await pods.delete("cronjob", "nightly")
    await pods.have_counts(0, 0)


async def test_two_sources_share_a_namespace_of_a_target(federation, namespace, nodes, pods):
    """east and west are each other's targets, with workloads of the same names."""
    await pods.west.kubectl("label", "namespace", namespace, f"{keys.ENABLED}=enabled")
    await federation.connect("west", "east", namespace=namespace)
    await pods.east.kubectl("-n", namespace, "delete", "target", "east", "--timeout=60s")
    web = a_deployment("web", 4)
    await pods.apply(web)
    await pods.west.kubectl.apply({**web, "metadata": {**web["metadata"], "namespace": namespace}})
    for member in (pods.east, pods.west):
        await member.kubectl("-n", namespace, "rollout", "status", "deployment/web", "--timeout=120s")
    await pods.have_counts(4, 4)
    staying = named(await federation.delegates(pods.east, namespace))
    await pods.delete("deployment", "web")
    await pods.have_counts(4, 0)
    assert named(await federation.delegates(pods.east, namespace)) == staying
    await pods.west.kubectl("-n", namespace, "delete", "deployment", "web", "--wait=false")
    await pods.have_counts(0, 0)
    await pods.west.kubectl("-n", namespace, "delete", "target", "east", "--timeout=60s")
