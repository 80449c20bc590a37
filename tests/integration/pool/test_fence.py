"""A super cluster that is cut off from its pool: its agent ends the pods there before they start elsewhere."""

import asyncio
import contextlib
import json

import pytest
import yaml

import programs
from eventually import eventually
from hansa.kube import errors, resources
from hansa.tenancy.pool import fence
from kube_proxy import running_proxy

pytestmark = pytest.mark.timeout(400)  # the first one begins with three clusters, maybe on a busy machine
SLICE, PLACEMENTS = "scheduler.tenancy.x-k8s.io/slice", "scheduler.tenancy.x-k8s.io/placements"
WITHIN = 90.0
SOON = ("--lost-after", "6", "--fence-grace", "10")
LATE = ("--lost-after", "60", "--fence-grace", "30")


class Cut:
    """The pool with a scheduler, a syncer, and an agent in r2, which all others reach through a proxy."""

    def __init__(self, lab, proxy, folder):
        self.lab, self.proxy, self.folder = lab, proxy, folder
        self.agent = self.scheduler = None

    @property
    def agent_log(self):
        return self.folder / "agent.log"

    async def begin(self, *flags):
        """Start all, and wait until the agent is known."""
        meta = self.lab.meta
        await self.lab.start("pool", "--pool", *flags)
        config = str(meta.cluster.kubeconfig)
        self.scheduler = await programs.start(
            "vc-scheduler", "--kubeconfig", config, *flags, log=self.folder / "scheduler.log"
        )
        await self.start_agent()

        async def is_known():
            found = await meta.kubectl.get("clusters.cluster.x-k8s.io", "r2")
            return found["metadata"]["annotations"].get("hansa.dev/agent") == "true"

        await eventually(is_known, within=WITHIN)

    async def start_agent(self):
        """With the rights that `hansa join --agent` gives it, and no others."""
        r2 = self.lab.supers["r2"]
        token = await r2.kubectl("create", "token", "-n", "hansa-system", "hansa-agent")
        config = yaml.safe_load(r2.cluster.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": token.strip()}
        path = self.folder / "agent.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        self.agent = await programs.start("super-agent", "--kubeconfig", str(path), log=self.agent_log)

    async def kill_agent(self):
        self.agent.kill()
        await self.agent.ended()

    async def end(self):
        for program in (self.agent, self.scheduler):
            if program is not None:
                await program.stop()
        await self.lab.stop()

    async def stateful_set(self, namespace):
        """Two pods with names that stay, one in each super cluster; the one in r2, as it is there."""
        meta, r2, below = self.lab.meta, self.lab.supers["r2"], self.lab.tenant.below(namespace)
        words = {SLICE: '{"cpu":"100m", "memory":"100Mi"}'}
        await meta.make(resources.NAMESPACES, namespace, metadata={"annotations": words})
        await meta.kubectl("create", "quota", "all", "-n", namespace, "--hard=cpu=200m,memory=200Mi")
        await eventually(lambda: self.is_placed(namespace, {"r1": 1, "r2": 1}), within=WITHIN)
        limits = {"cpu": "100m", "memory": "100Mi"}
        container = {"name": "main", "image": "example.com/app:1", "resources": {"limits": limits}}
        template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [container]}}
        spec = {"serviceName": "db", "replicas": 2, "selector": {"matchLabels": {"app": "db"}}, "template": template}
        await meta.make(resources.STATEFUL_SETS, "db", namespace, spec=spec)

        async def look():
            pods = (await r2.client.list(resources.PODS, namespace=below)).items
            assert [pod.status.get("phase") for pod in pods] == ["Running"], f"r2 has {[pod.to_dict() for pod in pods]}"
            return pods[0]

        return await eventually(look, within=WITHIN)

    async def is_placed(self, namespace, wanted):
        found = await self.lab.meta.client.get(resources.NAMESPACES, namespace)
        text = found.annotations.get(PLACEMENTS, "{}")
        assert json.loads(text) == wanted, f"{namespace} is in {text}"
        return True

    async def is_whole(self, namespace):
        found = await self.lab.meta.client.get(resources.STATEFUL_SETS, "db", namespace=namespace)
        assert found.status.get("readyReplicas") == 2, found.status
        return True

    async def noted(self):
        """The renewal that the agent sees, and for how long it does."""
        key = fence.LEASE
        lease = await self.lab.supers["r2"].client.get(resources.LEASES, key.name, namespace=key.namespace)
        renewal, _, age = fence.agent_note(lease).partition(" ")
        return renewal, float(age or 0), lease.spec["renewTime"]

    @contextlib.asynccontextmanager
    async def never_twice(self, below, name):
        """See that a pod is not in r1 while it is in r2. r1 is asked first: what it has then, r2 has no more."""
        r1, r2 = self.lab.supers["r1"], self.lab.supers["r2"]

        async def look():
            while True:
                if await r1.look(resources.PODS, name, below):
                    assert await r2.look(resources.PODS, name, below) is None, f"{name} is in r1 and in r2"
                await asyncio.sleep(0.01)

        async with asyncio.TaskGroup() as group:
            task = group.create_task(look())
            yield
            task.cancel()


@pytest.fixture
async def cut(shared_pool, tmp_path, request):
    """The pool, without its programs yet, and r2 behind a proxy; afterwards all is as before."""
    await shared_pool.stop()
    async with running_proxy() as proxy:
        config = proxy.kubeconfig(shared_pool.supers["r2"].cluster.kubeconfig, tmp_path)
        await shared_pool.hansa("join", "r2", "--kubeconfig", str(config), "--apply", "--without-syncer", "--agent")
        made = Cut(shared_pool, proxy, tmp_path)
        try:
            yield made
        finally:
            proxy.thaw()
            await made.end()
        if getattr(request.node, "has_failed", False):
            for name in ("agent.log", "scheduler.log"):
                print(name, (tmp_path / name).read_text()[-6000:])  # noqa: T201
            print(shared_pool.log().read_text()[-6000:])  # noqa: T201
    await shared_pool.supers["r2"].kubectl("delete", "deployment", "-n", "hansa-system", "hansa-agent")
    await shared_pool.join("r2")
    await shared_pool.start()


@pytest.mark.parametrize("is_killed", [False, True], ids=["one life", "killed in the middle"])
async def test_pods_of_a_cluster_that_is_cut_off_end_there_before_they_start_elsewhere(cut, namespace, is_killed):
    lab, below, r2 = cut.lab, cut.lab.tenant.below(namespace), cut.lab.supers["r2"]
    await cut.begin(*SOON)
    pod = await cut.stateful_set(namespace)
    await r2.make(resources.PODS, f"{namespace}-own", "default", spec={"containers": [{"name": "a", "image": "a:1"}]})
    cut.proxy.freeze()
    async with cut.never_twice(below, pod.name):
        if is_killed:

            async def is_noted():
                return (await cut.noted())[1] > 2.5

            await eventually(is_noted, within=WITHIN)
            await cut.kill_agent()
            await cut.start_agent()
        await r2.gone(resources.PODS, pod.name, below)
        await lab.supers["r1"].there(resources.PODS, pod.name, below, within=WITHIN)
        await eventually(lambda: cut.is_whole(namespace), within=WITHIN)
        reported = await r2.event("Fenced", fence.LEASE.name, fence.LEASE.namespace)
        assert "was not renewed for" in reported["message"]
        assert await r2.look(resources.PODS, f"{namespace}-own", "default"), "it is no tenant's"
        cut.proxy.thaw()
        await r2.gone(resources.NAMESPACES, below)
    await eventually(lambda: cut.is_whole(namespace), within=WITHIN)
    await r2.client.delete(resources.PODS, f"{namespace}-own", namespace="default")


async def test_pods_that_were_fenced_and_not_moved_are_recreated(cut, namespace):
    below, r2 = cut.lab.tenant.below(namespace), cut.lab.supers["r2"]
    await cut.begin("--lost-after", "6", "--fence-grace", "60")
    pod = await cut.stateful_set(namespace)
    cut.proxy.freeze()
    await r2.gone(resources.PODS, pod.name, below)
    cut.proxy.thaw()
    await r2.there(resources.PODS, pod.name, below, when=lambda found: found["metadata"]["uid"] != pod.uid)
    await r2.phase(pod.name, below)
    await cut.is_placed(namespace, {"r1": 1, "r2": 1})
    await eventually(lambda: cut.is_whole(namespace), within=WITHIN)


async def test_a_short_cut_ends_and_moves_nothing(cut, namespace):
    below, r2 = cut.lab.tenant.below(namespace), cut.lab.supers["r2"]
    await cut.begin(*LATE)
    pod = await cut.stateful_set(namespace)
    log = cut.lab.log()
    offset = log.stat().st_size

    async def is_logged(text):
        return text in log.read_bytes()[offset:].decode()

    cut.proxy.freeze()
    await eventually(lambda: is_logged("cluster unreachable"), within=WITHIN)
    cut.proxy.thaw()
    await eventually(lambda: is_logged("cluster reachable"), within=WITHIN)
    await _assert_untouched(cut, namespace, pod)
    assert (await r2.look(resources.PODS, pod.name, below))["status"]["phase"] == "Running"


async def test_an_agent_that_could_not_see_the_fence_itself_waits_for_those_who_renew_it(cut, namespace):
    await cut.begin("--lost-after", "6", "--fence-grace", "60")
    pod = await cut.stateful_set(namespace)

    async def is_blind():
        return cut.agent_log.read_text().count("fence check failed") >= 9  # a second each

    with cut.lab.supers["r2"].frozen():
        await eventually(is_blind, within=WITHIN)
    await _assert_untouched(cut, namespace, pod)


async def _assert_untouched(cut, namespace, pod):
    """When the agent has seen a new renewal, all is as it was."""
    _, _, before = await cut.noted()

    async def is_seen():
        with contextlib.suppress(errors.Unreachable):
            renewal, _, _ = await cut.noted()
            return renewal > before
        return False

    await eventually(is_seen, within=WITHIN)
    found = await cut.lab.supers["r2"].look(resources.PODS, pod.name, cut.lab.tenant.below(namespace))
    assert found is not None
    assert (found["metadata"]["uid"], found["metadata"].get("deletionTimestamp")) == (pod.uid, None)
    assert "fence expired" not in cut.agent_log.read_text()
    await cut.is_placed(namespace, {"r1": 1, "r2": 1})


async def test_without_a_fence_the_agent_warns_and_does_nothing(cut):
    r1 = cut.lab.supers["r1"]
    with contextlib.suppress(errors.NotFound):
        await r1.client.delete(resources.LEASES, fence.LEASE.name, namespace=fence.LEASE.namespace)
    cut.agent = await programs.start("super-agent", "--kubeconfig", str(r1.cluster.kubeconfig), log=cut.agent_log)

    async def warns():
        return "no fence: lease missing or never renewed" in cut.agent_log.read_text()

    await eventually(warns, within=WITHIN)
    assert not cut.agent.has_ended
    await cut.lab.join("r1")
