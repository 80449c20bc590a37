"""One measurement of one client library, in a process of its own: `kube_worker.py LIBRARY TASK KUBECONFIG COUNT`.

Prints one line of JSON. What is measured begins after the first event or request, so imports and TLS don't count.
"""

import asyncio
import contextlib
import gc
import json
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

NAMESPACE = "bench"
IN_FLIGHT = 50
Work = Callable[[str, int], Awaitable[dict[str, float]]]


def patch(number: int) -> dict[str, Any]:
    return {"metadata": {"annotations": {"bench": str(number)}}}


def name(number: int) -> str:
    return f"pod-{number % 1000:05}"


def rss() -> int:
    """The resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def timed_events(events: AsyncIterator[Any], count: int) -> dict[str, float]:
    """CPU for `count` events after the first."""
    await anext(events)
    cpu = time.process_time()
    for _ in range(count):
        await anext(events)
    return {"count": count, "cpu": time.process_time() - cpu}


async def timed_calls(call: Callable[[int], Awaitable[Any]], count: int) -> dict[str, float]:
    """CPU for `count` calls after the first, many at a time."""
    await asyncio.gather(*(call(number) for number in range(IN_FLIGHT)))
    numbers = iter(range(count))

    async def worker() -> None:
        for number in numbers:
            await call(number)

    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))
    return {"count": count, "cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}


@contextlib.asynccontextmanager
async def hansa(config: str):  # type: ignore[no-untyped-def]
    from hansa.kube.client import Client  # noqa: PLC0415
    from hansa.kube.credentials import kubeconfig  # noqa: PLC0415

    async with Client(kubeconfig.from_files(config), user_agent="bench") as client:
        yield client


async def hansa_watch(config: str, count: int) -> dict[str, float]:
    from hansa.kube import watching  # noqa: PLC0415
    from hansa.kube.resources import PODS  # noqa: PLC0415

    async with hansa(config) as client:
        changes = watching.watch(client, PODS, namespace=NAMESPACE)
        async with contextlib.aclosing(changes):
            assert isinstance(await anext(changes), watching.Restarted)
            return await timed_events(changes, count)


async def hansa_patch(config: str, count: int) -> dict[str, float]:
    from hansa.kube.resources import PODS  # noqa: PLC0415

    async with hansa(config) as client:
        return await timed_calls(lambda n: client.patch(PODS, name(n), patch(n), namespace=NAMESPACE), count)


async def hansa_sync(config: str, count: int) -> dict[str, float]:
    """The whole list into a cache, and what it weighs there."""
    from hansa.kube import watching  # noqa: PLC0415
    from hansa.kube.resources import PODS  # noqa: PLC0415

    async with hansa(config) as client:
        await client.list(PODS, namespace=NAMESPACE, limit=100)
        gc.collect()
        before, cpu, wall = rss(), time.process_time(), time.perf_counter()
        cache = {}
        changes = watching.watch(client, PODS, namespace=NAMESPACE)
        async with contextlib.aclosing(changes):
            async for change in changes:
                match change:
                    case watching.Added(obj):
                        cache[obj.key] = obj
                    case watching.Synced():
                        break
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        gc.collect()
        assert len(cache) == count
        tracked = sum(map(gc.is_tracked, cache.values()))
        return {"count": count, "cpu": cpu, "wall": wall, "bytes": rss() - before, "tracked": tracked}


async def kubernetes_asyncio_watch(config: str, count: int) -> dict[str, float]:
    from kubernetes_asyncio import client, watch  # noqa: PLC0415
    from kubernetes_asyncio.config import new_client_from_config  # noqa: PLC0415

    async with await new_client_from_config(config) as api, watch.Watch() as watcher:
        core = client.CoreV1Api(api)
        return await timed_events(aiter(watcher.stream(core.list_namespaced_pod, NAMESPACE)), count)


async def kubernetes_asyncio_patch(config: str, count: int) -> dict[str, float]:
    from kubernetes_asyncio import client  # noqa: PLC0415
    from kubernetes_asyncio.config import new_client_from_config  # noqa: PLC0415

    async with await new_client_from_config(config) as api:
        send = client.CoreV1Api(api).patch_namespaced_pod
        merge = "application/merge-patch+json"
        return await timed_calls(lambda n: send(name(n), NAMESPACE, patch(n), _content_type=merge), count)


async def lightkube_watch(config: str, count: int) -> dict[str, float]:
    from lightkube import AsyncClient, KubeConfig  # noqa: PLC0415
    from lightkube.resources.core_v1 import Pod  # noqa: PLC0415

    client = AsyncClient(KubeConfig.from_file(config))
    try:
        return await timed_events(aiter(client.watch(Pod, namespace=NAMESPACE)), count)
    finally:
        await client.close()


async def lightkube_patch(config: str, count: int) -> dict[str, float]:
    from lightkube import AsyncClient, KubeConfig  # noqa: PLC0415
    from lightkube.resources.core_v1 import Pod  # noqa: PLC0415
    from lightkube.types import PatchType  # noqa: PLC0415

    client = AsyncClient(KubeConfig.from_file(config))
    try:
        return await timed_calls(
            lambda n: client.patch(Pod, name(n), patch(n), namespace=NAMESPACE, patch_type=PatchType.MERGE), count
        )
    finally:
        await client.close()


WORK: dict[tuple[str, str], Work] = {
    ("hansa", "watch"): hansa_watch,
    ("hansa", "patch"): hansa_patch,
    ("hansa", "sync"): hansa_sync,
    ("kubernetes_asyncio", "watch"): kubernetes_asyncio_watch,
    ("kubernetes_asyncio", "patch"): kubernetes_asyncio_patch,
    ("lightkube", "watch"): lightkube_watch,
    ("lightkube", "patch"): lightkube_patch,
}


def main(library: str, task: str, config: str, count: str) -> None:
    sys.stdout.write(json.dumps(asyncio.run(WORK[library, task](config, int(count)))) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
