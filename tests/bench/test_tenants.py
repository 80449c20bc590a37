"""What tenants cost: seconds until one can be used, memory and time of those that are idle. It only prints."""

import asyncio
import contextlib
import statistics
import time
from pathlib import Path

import pytest
import yaml

import virtual_clusters
from figures import figure
from hansa.kube import resources
from hansa.programs import process
from hansa.tenancy import installing
from hansa.tenancy.api import VIRTUAL_CLUSTERS, virtual_cluster
from hansa.tenancy.operator import cluster_versions
from kubectl_vc import KubectlVc
from leftovers import owned_folder
from operator_lab import Operator
from programs import Kubectl

ONE_AFTER_THE_OTHER = 5
TOGETHER = 10
MANY = 50
SETTLE_SECONDS, IDLE_SECONDS = 60.0, 60.0
INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")


@contextlib.asynccontextmanager
async def a_manager(client, cluster, *flags):
    """The manager, with tenants that are all gone at the end."""
    await installing.install(client, cluster_versions.samples())
    with owned_folder() as folder:
        operator = Operator(client, cluster.kubeconfig, folder, flags)
        await operator.start()
        try:
            yield operator
        finally:
            left = [virtual_cluster(one) for one in (await client.list(VIRTUAL_CLUSTERS)).items]
            for vc in left:
                await client.delete(VIRTUAL_CLUSTERS, vc.name, namespace=vc.namespace)
            await asyncio.gather(*(operator.gone(vc) for vc in left))
            await operator.stop()


async def test_seconds_from_kubectl_vc_create_to_the_tenants_first_answer(client, cluster, kubectl, tmp_path):
    async with a_manager(client, cluster) as operator:
        person, seconds = KubectlVc(kubectl, cluster.kubeconfig, folder=tmp_path), []
        for number in range(ONE_AFTER_THE_OTHER):
            wish = virtual_clusters.virtual_cluster(f"bench-{number}", "default").to_dict()
            manifest, config = tmp_path / f"{number}.yaml", tmp_path / f"{number}.kubeconfig"
            manifest.write_text(yaml.safe_dump(wish))
            began = time.monotonic()
            await person("create", "-f", str(manifest), "-o", str(config))
            await Kubectl(kubectl, config)("get", "ns")
            seconds.append(time.monotonic() - began)
        print(f"\nsecond by second: {', '.join(f'{one:.1f}' for one in seconds)}")
        figure("kubectl vc create to kubectl get ns, p50, s", statistics.median(seconds), most=6)
        assert operator.program is not None


@pytest.mark.parametrize(("etcd", "most"), [("own", 225), ("shared", 205)])
async def test_what_an_idle_tenant_costs(client, cluster, etcd, most):
    async with a_manager(client, cluster, "--etcd", etcd) as operator:
        made = [await operator.create(f"idle-{number}", "default") for number in range(TOGETHER)]
        for vc in made:
            await operator.phase(vc.key)
        await asyncio.sleep(SETTLE_SECONDS)
        running = process.running(operator.state)
        before = {key: _cpu_seconds(one.pid) for key, one in running.items()}
        await asyncio.sleep(IDLE_SECONDS)
        memory, share = _by_component(running, before)
        print(f"\n{TOGETHER} idle tenants, etcd {etcd}; each:")
        for component in sorted(memory):
            mib, percent = memory[component] / TOGETHER, share[component] / TOGETHER
            print(f"  {component:<26}{mib:>6.0f} MiB PSS {percent:>6.2f} % of a core")
        figure(f"memory of an idle tenant, {etcd} etcd, MiB PSS", sum(memory.values()) / TOGETHER, most=most)
        figure(f"time of an idle tenant, {etcd} etcd, % of a core", sum(share.values()) / TOGETHER, most=2.5)


async def test_fifty_tenants_serve(client, cluster):
    with _watchers(1024):
        async with a_manager(client, cluster, "--etcd", "shared", "--num-reconciles", "4") as operator:
            began = time.monotonic()
            made = [await operator.create(f"many-{number}", "default") for number in range(MANY)]
            for vc in made:
                await _running(operator, vc)
            print(f"\n{MANY} tenants run after {time.monotonic() - began:.0f} s")
            answers = 0
            for vc in made:
                async with operator.client(await operator.find(vc.key)) as tenant:
                    answers += bool((await tenant.list(resources.NAMESPACES)).items)
            figure("tenants that answer at once", answers, least=MANY)
            memory, _ = _by_component(process.running(operator.state), {})
            figure("memory of all, GiB PSS", sum(memory.values()) / 1024, most=MANY * 205 / 1024)


async def _running(operator, vc):
    async with asyncio.timeout(3600):
        while not (await operator.find(vc.key)).is_running:
            await asyncio.sleep(1)


def _by_component(running, before):
    memory: dict[str, float] = {}
    share: dict[str, float] = {}
    for key, one in running.items():
        _, component = key
        memory[component] = memory.get(component, 0) + _pss_mib(one.pid)
        spent = _cpu_seconds(one.pid) - before.get(key, _cpu_seconds(one.pid))
        share[component] = share.get(component, 0) + 100 * spent / IDLE_SECONDS
    return memory, share


@contextlib.contextmanager
def _watchers(least):
    """Each API server watches three files; most systems allow 128 to a user, and root may allow more."""
    before = INOTIFY.read_text()
    INOTIFY.write_text(str(max(least, int(before))))
    try:
        yield
    finally:
        INOTIFY.write_text(before)


def _cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def _pss_mib(pid):
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
