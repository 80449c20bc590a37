"""Scheduler and syncer are killed repeatedly at random moments: nothing runs twice, and all objects converge."""

import asyncio
import json
import random

import pytest

import programs
import soaking
from eventually import eventually
from hansa.kube import resources

pytestmark = pytest.mark.soak
SCHEDULER = "scheduler.tenancy.x-k8s.io"
WITHIN = 120.0
ROUNDS, MOST = 6, 6  # pods and slices
LATEST = 1.0  # seconds from a change to a crash; a program begins in less


class Programs:
    """The two programs, which are killed and started again."""

    def __init__(self, lab, folder):
        self._lab, self._log, self._scheduler = lab, folder / "vc-scheduler.log", None

    async def start(self):
        if "pool" not in self._lab.syncers:
            await self._lab.start()
        if self._scheduler is None:
            config = str(self._lab.meta.cluster.kubeconfig)
            self._scheduler = await programs.start("vc-scheduler", "--kubeconfig", config, log=self._log)

    async def kill(self, *, is_scheduler):
        if is_scheduler:
            program, self._scheduler = self._scheduler, None
        else:
            program = self._lab.syncers.pop("pool")
        program.kill()
        await program.ended()

    async def stop(self):
        if self._scheduler is not None:
            await self._scheduler.stop()


@pytest.fixture
async def running(pool, tmp_path):
    """Both of them."""
    both = Programs(pool, tmp_path)
    await both.start()
    yield both
    await both.stop()


class People:
    """Those who change something."""

    def __init__(self, pool, namespace, chance):
        self._kubectl, self._namespace, self._chance = pool.meta.kubectl, namespace, chance
        self.replicas, self.slices, self.colour = 2, MOST, 0

    async def begin(self):
        annotations = {f"{SCHEDULER}/slice": '{"cpu":"100m"}'}
        labels = {"app": "web"}
        container = {"name": "c", "image": "busybox:1.29", "resources": {"limits": {"cpu": "100m"}}}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        spec = {"replicas": self.replicas, "selector": {"matchLabels": labels}, "template": template}
        here = {"namespace": self._namespace}
        await self._kubectl.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self._namespace, "annotations": annotations}}
        )
        await self._kubectl.apply(
            {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "all", **here}, "spec": self._quota()},
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", **here}, "data": {"colour": "0"}},
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", **here}, "spec": spec},
        )

    def _quota(self):
        return {"hard": {"cpu": f"{self.slices * 100}m"}}

    async def change(self):
        match self._chance.randrange(4):
            case 0:
                self.slices = self._chance.randint(2, MOST)
                await self._patch("quota", "all", {"spec": self._quota()})
            case 1:
                self.colour += 1
                await self._patch("configmap", "web", {"data": {"colour": str(self.colour)}})
            case 2:
                names = (await self._kubectl("get", "pods", "-n", self._namespace, "-o", "name")).split()
                if names:
                    await self._kubectl("delete", "--wait=false", "-n", self._namespace, self._chance.choice(names))
            case _:
                self.replicas = self._chance.randint(1, MOST - 2)
                await self._patch("deployment", "web", {"spec": {"replicas": self.replicas}})

    async def settle(self):
        """Want something that can be: a quota that counts before there are pods for it."""
        self.slices, self.replicas = MOST, MOST - 1
        await self._patch("quota", "all", {"spec": self._quota()})
        hard = self._quota()["hard"]["cpu"]
        counts = f"--for=jsonpath={{.status.hard.cpu}}={hard}"
        await self._kubectl("wait", "quota/all", "-n", self._namespace, counts, "--timeout=60s")
        await self._patch("deployment", "web", {"spec": {"replicas": self.replicas}})

    async def _patch(self, kind, name, patch):
        await self._kubectl("patch", kind, name, "-n", self._namespace, "--type", "merge", "-p", json.dumps(patch))


async def never_twice(pool, below):
    """See that no pod is in both super clusters. One that seems to be may have moved: a third read decides."""
    r1, r2 = pool.supers.values()
    while True:
        first = {pod.name: pod for pod in (await r1.client.list(resources.PODS, namespace=below)).items}
        for other in (await r2.client.list(resources.PODS, namespace=below)).items:
            if (pod := first.get(other.name)) is not None:
                now = await r1.look(resources.PODS, pod.name, below)
                assert now is None or now["metadata"]["uid"] != pod.uid, f"{pod.name} is in r1 and in r2"


async def test_processes_killed_at_random_moments_converge_and_no_pod_runs_twice(pool, running, namespace):
    for number, seed in enumerate(soaking.seeds()):
        await play(pool, running, f"{namespace}-{number}", random.Random(seed))


async def play(pool, running, namespace, chance):
    below = pool.tenant.below(namespace)
    people = People(pool, namespace, chance)
    await people.begin()
    async with asyncio.TaskGroup() as group:
        watching = group.create_task(never_twice(pool, below))
        for _ in range(ROUNDS):
            await people.change()
            await asyncio.sleep(chance.uniform(0, LATEST))  # the moment is what is tried
            await running.kill(is_scheduler=chance.random() < 0.5)
            await running.start()
        await people.settle()
        await eventually(lambda: has_converged(pool, namespace, people), within=WITHIN)
        watching.cancel()
    await pool.meta.client.delete(resources.NAMESPACES, namespace)


async def has_converged(pool, namespace, people):
    meta, below = pool.meta, pool.tenant.below(namespace)
    placements = json.loads(
        (await meta.client.get(resources.NAMESPACES, namespace)).annotations.get(f"{SCHEDULER}/placements", "{}")
    )
    assert sum(placements.values()) == people.slices, placements
    above = {one.name: one for one in (await meta.client.list(resources.PODS, namespace=namespace)).items}
    assert len(above) == people.replicas, f"{people.replicas} pods are wanted, and {sorted(above)} are there"
    assert {pod.status["phase"] for pod in above.values()} == {"Running"}
    given = {name: pod.annotations.get(f"{SCHEDULER}/superCluster") for name, pod in above.items()}
    for cluster, side in pool.supers.items():
        there = {pod.name for pod in (await side.client.list(resources.PODS, namespace=below)).items}
        assert there == {name for name, where in given.items() if where == cluster}, f"{cluster} has {there}"
        assert len(there) <= placements.get(cluster, 0), f"{cluster} has {len(there)} pods and {placements}"
        copy = await side.look(resources.CONFIG_MAPS, "web", below)
        wanted = {"colour": str(people.colour)} if cluster in placements else None
        assert (copy and copy["data"]) == wanted, f"{cluster} has {copy}"
    return True
