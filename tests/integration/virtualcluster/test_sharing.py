"""Replicas of vc-syncer that share the tenants: killed, frozen and restarted while pods are created all the time."""

import asyncio
import contextlib
import re
import signal
import time

import pytest

import programs
from eventually import eventually
from hansa.kube import resources
from tenant_league import pod

pytestmark = pytest.mark.timeout(400)
TAKEOVER = 15.0  # seconds until the tenants of a replica that died or froze are served again
PAUSE = 0.5  # seconds between two pods of a tenant
WITHIN = 90.0


class Replicas:
    """Replicas of vc-syncer for the same tenants."""

    def __init__(self, tenants, folder):
        self._tenants, self._folder = tenants, folder
        self.all = []

    async def start(self, *flags):
        log = self._folder / f"replica-{len(self.all)}.log"
        config = str(self._tenants.super.cluster.kubeconfig)
        common = ("--super-master-kubeconfig", config, *self._tenants.flags, "--leader-elect-namespace", "default")
        self.all.append(await programs.start("vc-syncer", *common, *(flags or ("--share-tenants",)), log=log))
        return self.all[-1]

    def server(self, tenant):
        """The replica that serves a tenant, by the logs; none if it is not exactly one."""
        found = [one for one in self.all if not one.has_ended and is_serving(one, tenant)]
        return found[0] if len(found) == 1 else None

    async def served(self, *, without=()):
        async def are_served():
            servers = [self.server(tenant) for tenant in self._tenants.tenants.values()]
            assert all(one is not None and one not in without for one in servers), servers
            return servers

        return await eventually(are_served, within=WITHIN)

    async def end(self):
        for one in self.all:
            with contextlib.suppress(ProcessLookupError):
                one.signal(signal.SIGCONT)
            one.kill()
            await one.ended()


def is_serving(replica, tenant):
    changes = re.findall(rf"tenant (added|removed).*tenant={tenant.key}", replica.log.read_text())
    return changes[-1:] == ["added"]


@pytest.fixture
async def replicas(tenants, tmp_path):
    """Replicas in place of the syncer."""
    await tenants.kill()
    made = Replicas(tenants, tmp_path)
    yield made
    await made.end()


class Load:
    """Creates pods in a namespace of each tenant at a steady rate."""

    def __init__(self, tenants, namespace):
        self._tenants, self._namespace = tenants, namespace
        self.number = 0

    async def run(self):
        while True:
            for tenant in self._tenants.tenants.values():
                await tenant.make(resources.PODS, f"load-{self.number}", self._namespace, **pod())
            self.number += 1
            await asyncio.sleep(PAUSE)

    async def reached(self, tenant, *, since):
        """Wait until a pod that was created now is in the super cluster; the seconds since then."""
        name = f"load-{self.number + 1}"
        await self._tenants.super.there(resources.PODS, name, tenant.below(self._namespace), within=WITHIN)
        return time.monotonic() - since


async def test_nothing_is_lost_or_doubled_while_replicas_die_freeze_and_are_replaced(
    tenants, replicas, blue, green, namespace, capsys
):
    for _ in range(3):
        await replicas.start()
    await replicas.served()
    load, seconds = Load(tenants, namespace), {}
    async with contextlib.AsyncExitStack() as stack:
        watched = [
            await stack.enter_async_context(tenants.super.watched(resources.PODS, one.below(namespace)))
            for one in (blue, green)
        ]
        loading = asyncio.create_task(load.run())
        stack.callback(loading.cancel)

        killed = replicas.server(blue)
        killed.kill()
        seconds["kill -9"] = await load.reached(blue, since=time.monotonic())
        await replicas.start()

        await replicas.served()
        frozen = replicas.server(green)
        frozen.signal(signal.SIGSTOP)
        seconds["SIGSTOP"] = await load.reached(green, since=time.monotonic())
        frozen.signal(signal.SIGCONT)
        await replicas.served()

        for old in [one for one in replicas.all if not one.has_ended]:
            await replicas.start()
            since = time.monotonic()
            assert await old.stop() == 0, old.log.read_text()[-4000:]
            seconds["SIGTERM"] = max(seconds.get("SIGTERM", 0.0), await load.reached(blue, since=since))
        await replicas.served()
        loading.cancel()

        for tenant, versions in zip((blue, green), watched, strict=True):
            for number in range(load.number):
                await tenant.phase(f"load-{number}", namespace)
            uids = {}
            for one in versions:
                uids.setdefault(one.name, set()).add(one.uid)
            assert all(len(found) == 1 for found in uids.values()), "a pod was copied twice"
            assert {f"load-{number}" for number in range(load.number)} <= uids.keys()
            assert not any(one.is_deleting for one in versions)
    with capsys.disabled():
        print(f"\nseconds until a new pod is copied: {seconds}")  # noqa: T201
    assert max(seconds.values()) < TAKEOVER


async def test_replicas_wait_for_a_leader_of_the_other_kind_and_keep_it_out(tenants, replicas, blue, green, namespace):
    leader = await replicas.start("--leader-elect")
    await eventually(lambda: serves_all(leader, blue, green), within=WITHIN)
    first, second = [await replicas.start() for _ in range(2)]
    await eventually(lambda: says(first, "members changed"), within=WITHIN)
    other = await replicas.start("--leader-elect")
    assert not is_serving(first, blue)
    assert await leader.stop() == 0
    servers = await replicas.served()
    assert set(servers) <= {first, second} or servers == [other, other]


async def serves_all(replica, *tenants):
    return all(is_serving(replica, tenant) for tenant in tenants)


async def says(replica, text):
    return text in replica.log.read_text()


async def test_of_two_virtual_clusters_with_one_control_plane_the_younger_one_is_not_served(
    tenants, replicas, blue, clusters
):
    for _ in range(2):
        await replicas.start()
    await replicas.served()
    names = [f"again-{number}" for number in range(4)]  # some of them belong to the other replica
    for name in names:
        await tenants.announce(name, clusters["blue"])
    for name in names:
        await tenants.super.kubectl(
            "wait",
            "vc",
            name,
            "--for=jsonpath={.status.conditions[?(@.type=='Synced')].reason}=SameCluster",
            "--timeout=60s",
        )
    await tenants.super.kubectl("delete", "vc", *names)
