"""Waits for a VirtualCluster to run or to be deleted, by a watch with a deadline, and reports its progress."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable

from hansa.kube import errors, resources, watching
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.runtime import tasks
from hansa.runtime.errors import HansaError
from hansa.tenancy import api
from hansa.tenancy.operator import statefulset

Report = Callable[[str], None]
NOT_RECONCILED = "it has no status; check that `hansa vc-manager` is running"


class Waiter:
    """Waits for one VirtualCluster, at most `deadline` seconds; `report` gets lines about its progress."""

    def __init__(self, client: Client, key: NamespacedName, *, deadline: float, report: Report) -> None:
        self._client, self._key, self._deadline, self._report = client, key, deadline, report
        self._last = NOT_RECONCILED
        self._reported: set[str] = set()

    async def running(self) -> api.VirtualCluster:
        """Wait until the control plane runs by the current spec."""
        components: list[asyncio.Task[None]] = []
        try:
            async with asyncio.timeout(self._deadline), contextlib.aclosing(self._states()) as states:
                async for obj in states:
                    if obj is None:
                        raise HansaError(f"VirtualCluster {self._key} was deleted while waiting for it")
                    vc = api.virtual_cluster(obj)
                    if is_settled(vc):
                        return vc
                    self._report_pending(vc)
                    if not components and vc.status.cluster_namespace:
                        components.append(asyncio.create_task(self._report_components(vc.root)))
        except TimeoutError:
            pass
        finally:
            await tasks.cancel(*components)
        raise HansaError(
            f"VirtualCluster {self._key} is not running after {self._deadline:g} s: {self._last}."
            " It is still being created; run the same command again to wait for it"
        )

    async def deleted(self, uid: str) -> None:
        """Wait until the VirtualCluster with this uid is deleted."""
        try:
            async with asyncio.timeout(self._deadline), contextlib.aclosing(self._states()) as states:
                async for obj in states:
                    if obj is None or obj.uid != uid:
                        return
                    self._report_pending(api.virtual_cluster(obj))
        except TimeoutError:
            pass
        raise HansaError(
            f"VirtualCluster {self._key} is not deleted after {self._deadline:g} s: {self._last}."
            " The deletion continues"
        )

    async def _states(self) -> AsyncGenerator[Object | None, None]:
        """The VirtualCluster at each change; None when it does not exist."""
        is_there = False
        async with contextlib.aclosing(self._watch(api.VIRTUAL_CLUSTERS, self._key)) as changes:
            async for change in changes:
                match change:
                    case watching.Restarted():
                        is_there = False
                    case watching.Added(obj) | watching.Modified(obj):
                        is_there = True
                        yield obj
                    case watching.Deleted():
                        yield None
                    case watching.Synced() if not is_there:
                        yield None
                    case watching.Interrupted(errors.Denied() | errors.NotFound() as error):
                        raise error
                    case watching.Interrupted(error):
                        self._report_once(f"watch interrupted, retrying: {error}")

    async def _report_components(self, root: str) -> None:
        """Report each StatefulSet of the control plane when it is ready; control planes of other kinds have none."""
        async with contextlib.aclosing(self._watch(resources.STATEFUL_SETS, NamespacedName(root, ""))) as changes:
            async for change in changes:
                match change:
                    case watching.Added(obj) | watching.Modified(obj) if not statefulset.unready(obj):
                        self._report_once(f"{obj.name} is ready")
                    case watching.Interrupted(errors.Denied()):
                        return  # the user has no right to watch StatefulSets

    def _watch(self, resource: Resource, key: NamespacedName) -> AsyncGenerator[watching.Change, None]:
        fields = f"metadata.name={key.name}" if key.name else ""
        return watching.watch(self._client, resource, namespace=key.namespace, fields=fields)

    def _report_pending(self, vc: api.VirtualCluster) -> None:
        self._last = pending_reason(vc)
        if self._last != NOT_RECONCILED:
            self._report_once(self._last)

    def _report_once(self, line: str) -> None:
        if line not in self._reported:
            self._reported.add(line)
            self._report(line)


def is_settled(vc: api.VirtualCluster) -> bool:
    """Whether the control plane runs, and vc-manager has reconciled the current spec."""
    ready = vc.condition(api.ConditionType.READY)
    is_observed = ready is None or ready.observed_generation in (0, vc.object.metadata.generation)
    is_upgrade_requested = vc.object.labels.get(keys.READY_FOR_UPGRADE) == "true"
    return vc.status.phase == api.Phase.RUNNING and is_observed and not is_upgrade_requested and not vc.is_deleting


def pending_reason(vc: api.VirtualCluster) -> str:
    """Why a VirtualCluster is not settled: the message of its condition Ready, or of its status."""
    ready = vc.condition(api.ConditionType.READY)
    if ready is not None and ready.status != "True" and ready.message:
        return ready.message
    if vc.is_deleting:
        return "it is being deleted"
    return vc.status.message or vc.status.reason or NOT_RECONCILED
