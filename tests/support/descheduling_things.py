"""Pods that their lower cluster cannot schedule, for tests of the descheduler."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

from eventually import eventually
from league import PATIENCE, League, container


@contextlib.asynccontextmanager
async def full(league: League, name: str, namespace: str) -> AsyncIterator[None]:
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


async def only(league: League, namespace: str, *, on: str | None = None) -> Any:
    """Wait until the Deployment has one pod that is not being deleted, on this node; the pod."""

    async def look() -> Any:
        pods = await league.upper.all("pods", namespace=namespace)
        [pod] = [one for one in pods if "deletionTimestamp" not in one["metadata"]]
        assert on is None or pod["spec"].get("nodeName") == on, (pod["spec"].get("nodeName"), pod["status"])
        return pod

    return await eventually(look, within=PATIENCE)


async def refused(league: League, namespace: str, node: str) -> Any:
    """Wait until the pod is on a node whose cluster cannot schedule it; the pod."""

    async def look() -> Any:
        pod = await only(league, namespace, on=node)
        conditions = {one["type"]: one for one in pod["status"].get("conditions") or []}
        assert conditions["PodScheduled"].get("reason") == "Unschedulable", conditions
        return pod

    return await eventually(look, within=PATIENCE)
