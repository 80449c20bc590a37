"""Waiting for a VirtualCluster by watching it: what happens is told as it happens, and the end is always in sight."""

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

Tell = Callable[[str], None]
UNSEEN = "no manager has seen it; is `hansa vc-manager` running?"


class Waiter:
    """Waits for one VirtualCluster, `deadline` seconds at most; `tell` takes sentences about its progress."""

    def __init__(self, client: Client, key: NamespacedName, *, deadline: float, tell: Tell) -> None:
        self._client, self._key, self._deadline, self._tell = client, key, deadline, tell
        self._last = UNSEEN
        self._told: set[str] = set()

    async def running(self) -> api.VirtualCluster:
        """Wait until the control plane serves, as the newest spec says."""
        components: list[asyncio.Task[None]] = []
        try:
            async with asyncio.timeout(self._deadline), contextlib.aclosing(self._states()) as states:
                async for obj in states:
                    if obj is None:
                        raise HansaError(f"VirtualCluster {self._key} is not there: somebody deleted it")
                    vc = api.virtual_cluster(obj)
                    if is_settled(vc):
                        return vc
                    self._tell_trouble(vc)
                    if not components and vc.status.cluster_namespace:
                        components.append(asyncio.create_task(self._tell_components(vc.root)))
        except TimeoutError:
            pass
        finally:
            await tasks.cancel(*components)
        raise HansaError(
            f"VirtualCluster {self._key} is not running after {self._deadline:g} s: {self._last}."
            " It is still being made; the same command again goes on waiting"
        )

    async def gone(self, uid: str) -> None:
        """Wait until that life of it is over."""
        try:
            async with asyncio.timeout(self._deadline), contextlib.aclosing(self._states()) as states:
                async for obj in states:
                    if obj is None or obj.uid != uid:
                        return
                    self._tell_trouble(api.virtual_cluster(obj))
        except TimeoutError:
            pass
        raise HansaError(
            f"VirtualCluster {self._key} is still there after {self._deadline:g} s: {self._last}. It goes on leaving"
        )

    async def _states(self) -> AsyncGenerator[Object | None, None]:
        """The VirtualCluster whenever it changes; None when it is not there."""
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
                        self._once(f"no news for now: {error}")

    async def _tell_components(self, root: str) -> None:
        """The StatefulSets of a control plane, one line each; other control planes have none."""
        async with contextlib.aclosing(self._watch(resources.STATEFUL_SETS, NamespacedName(root, ""))) as changes:
            async for change in changes:
                match change:
                    case watching.Added(obj) | watching.Modified(obj) if not statefulset.unready(obj):
                        self._once(f"{obj.name} is ready")
                    case watching.Interrupted(errors.Denied()):
                        return  # who may not see them waits without

    def _watch(self, resource: Resource, key: NamespacedName) -> AsyncGenerator[watching.Change, None]:
        fields = f"metadata.name={key.name}" if key.name else ""
        return watching.watch(self._client, resource, namespace=key.namespace, fields=fields)

    def _tell_trouble(self, vc: api.VirtualCluster) -> None:
        self._last = trouble(vc)
        if self._last != UNSEEN:
            self._once(self._last)

    def _once(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            self._tell(sentence)


def is_settled(vc: api.VirtualCluster) -> bool:
    """Whether the control plane serves, and the manager has nothing more to do for the spec as it is."""
    ready = vc.condition(api.ConditionType.READY)
    is_seen = ready is None or ready.observed_generation in (0, vc.object.metadata.generation)
    is_asked = vc.object.labels.get(keys.READY_FOR_UPGRADE) == "true"
    return vc.status.phase == api.Phase.RUNNING and is_seen and not is_asked and not vc.is_leaving


def trouble(vc: api.VirtualCluster) -> str:
    """What a VirtualCluster waits for, in the manager's words."""
    ready = vc.condition(api.ConditionType.READY)
    if ready is not None and ready.status != "True" and ready.message:
        return ready.message
    if vc.is_leaving:
        return "it is being deleted"
    return vc.status.message or vc.status.reason or UNSEEN
