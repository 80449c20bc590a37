"""The descheduler and the webhook: a pod that its cluster cannot schedule goes to another one, and none is lost."""

import contextlib
import json

import pytest

import programs
from accounts import Account
from eventually import eventually
from league import PATIENCE, container, deployment

BIG = {"resources": {"requests": {"cpu": "10"}}}  # nodes have 16
POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: below
  pluginConfig:
  - name: RemovePodsUnschedulableBelow
    args: {minPendingSeconds: 0, freezeSeconds: FREEZE}
  plugins:
    deschedule: {enabled: [RemovePodsUnschedulableBelow]}
"""


@pytest.fixture
async def account(league, tmp_path):
    """The service account of the descheduler, with the rights of its manifest."""
    file = "descheduler"
    made = Account(league.upper, "hansa-system", "hansa-descheduler", (file,), tmp_path / "account.kubeconfig")
    await made.settle()
    yield made
    assert made.refused() == set()
    await made.leave()


@pytest.fixture
def descheduling(webhook, account, tmp_path):
    """Runs the descheduler for a block."""

    def running(*flags, freeze="300"):
        policy = tmp_path / "policy.yaml"
        policy.write_text(POLICY.replace("FREEZE", freeze))
        upper = ["--kubeconfig", str(account.kubeconfig), "--policy-config-file", str(policy)]
        return programs.hansa("descheduler", *upper, *flags, log=tmp_path / "descheduler.log")

    return running


@contextlib.asynccontextmanager
async def full(league, name, namespace):
    """Pods of the lower cluster's own leave 8 CPUs free on each of its nodes."""
    lower = league.lowers[name]
    await lower.kubectl("create", "namespace", namespace)
    nodes = [one["metadata"]["name"] for one in await lower.all("nodes")]
    await lower.kubectl.apply(
        *(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"own-{node}", "namespace": namespace},
                "spec": {"nodeName": node, "containers": [container(resources={"requests": {"cpu": "8"}})]},
            }
            for node in nodes
        )
    )
    yield
    await lower.kubectl("delete", "pods", "-n", namespace, "--all", "--grace-period=0", "--force")


async def only(league, namespace, *, on=None):
    """Wait until the Deployment has one pod that is not being deleted, on this node; the pod."""

    async def look():
        pods = await league.upper.all("pods", namespace=namespace)
        [pod] = [one for one in pods if "deletionTimestamp" not in one["metadata"]]
        assert on is None or pod["spec"].get("nodeName") == on, (pod["spec"].get("nodeName"), pod["status"])
        return pod

    return await eventually(look, within=PATIENCE)


async def refused(league, namespace, node):
    """Wait until the pod is on a node whose cluster cannot schedule it; the pod."""

    async def look():
        pod = await only(league, namespace, on=node)
        conditions = {one["type"]: one for one in pod["status"].get("conditions") or []}
        assert conditions["PodScheduled"].get("reason") == "Unschedulable", conditions
        return pod

    return await eventually(look, within=PATIENCE)


async def test_a_pod_that_its_cluster_cannot_schedule_goes_to_another(
    league, upper_namespace, descheduling, account, tmp_path
):
    upper = league.upper
    await upper.kubectl("cordon", "vn-lubeck")
    async with full(league, "hamburg", upper_namespace):
        selected = {"nodeSelector": {"kubernetes.io/os": "linux"}}
        made = deployment("web", 1, containers=[container(**BIG)], **selected)
        await upper.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(made))
        first = await refused(league, upper_namespace, "vn-hamburg")
        await upper.kubectl("uncordon", "vn-lubeck")
        async with descheduling("--dry-run"):

            async def planned():
                text = (tmp_path / "descheduler.log").read_text()
                assert "pod would be evicted" in text
                assert first["metadata"]["name"] in text
                return True

            await eventually(planned, within=PATIENCE)
        assert (await only(league, upper_namespace))["metadata"]["uid"] == first["metadata"]["uid"]
        async with descheduling():
            second = await only(league, upper_namespace, on="vn-lubeck")
            running = await league.phase(upper_namespace, second["metadata"]["name"])
    assert running["metadata"]["annotations"]["hansa.dev/avoids"] == "vn-hamburg"
    assert running["metadata"]["annotations"]["clusterSelector"] == first["metadata"]["annotations"]["clusterSelector"]
    lower = await league.lowers["lubeck"].find("pod", second["metadata"]["name"], namespace=upper_namespace)
    assert lower["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert "affinity" not in lower["spec"]
    events = await upper.all("events", namespace=upper_namespace)
    assert [one["message"] for one in events if one["reason"] == "Descheduled"]
    await eventually(account.ended)
    assert account.unused() <= {("patch", "events.")}, "an Event is patched when it happens again"


async def test_a_pod_that_fits_nowhere_is_tried_again_and_again_until_there_is_room(
    league, upper_namespace, descheduling
):
    async with contextlib.AsyncExitStack() as stack:
        for name in league.lowers:
            await stack.enter_async_context(full(league, name, upper_namespace))
        made = deployment("web", 1, containers=[container(**BIG)])
        seen = set()
        async with descheduling(freeze="15"):
            await league.upper.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(made))

            async def many():
                pod = await only(league, upper_namespace)
                seen.add((pod["metadata"]["uid"], pod["spec"].get("nodeName", "")))
                assert len({uid for uid, _ in seen}) >= 5, seen
                assert {"vn-hamburg", "vn-lubeck"} <= {node for _, node in seen}, seen
                return True

            await eventually(many, within=2 * PATIENCE)
            await stack.aclose()  # there is room now

            async def runs():
                pod = await only(league, upper_namespace)
                assert pod["status"]["phase"] == "Running", pod["status"]
                return pod

            await eventually(runs, within=PATIENCE)


async def test_bare_pods_are_safe(league, upper_namespace, descheduling, tmp_path):
    made = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "bare"},
        "spec": {"containers": [container(resources={"requests": {"cpu": "17"}})]},
    }
    made["spec"]["tolerations"] = [{"operator": "Exists"}]
    await league.upper.kubectl("-n", upper_namespace, "create", "-f", "-", stdin=json.dumps(made))
    async with descheduling():
        await eventually(lambda: _bound(league, upper_namespace), within=PATIENCE)
        first = await league.upper.find("pod", "bare", namespace=upper_namespace)
        await refused(league, upper_namespace, first["spec"]["nodeName"])
    assert f"{upper_namespace}/bare" not in (tmp_path / "descheduler.log").read_text()


async def _bound(league, namespace):
    pod = await league.upper.find("pod", "bare", namespace=namespace)
    return pod["spec"].get("nodeName")
