"""The end of a target: its pods are deleted first, with their delegates and copies, then its finalizer is removed.

The engine deletes the copies, because the link to a leaving target accepts none. A target that stays unreachable is
given up after a while: its Target must not be undeletable.
"""

import logging
from collections.abc import Iterable
from typing import Final

from hansa.control.informer import Scope
from hansa.engine.cluster import Cluster
from hansa.federation.api import PROXY_PODS
from hansa.federation.target_member import TargetMember
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.resource import Resource
from hansa.model import stamp
from hansa.runtime import clock

log = logging.getLogger(__name__)
GIVE_UP: Final = 60.0  # seconds for which a leaving target may be unreachable
PODS: Final = Scope(resources.PODS, fields=PROXY_PODS)


class Leaving:
    """Knows what is left of leaving targets. `kinds` are those that have copies in targets."""

    def __init__(self, source: Cluster, source_id: str, kinds: Iterable[Resource], *, clock: clock.Clock) -> None:
        self._source, self._source_id, self._kinds, self._clock = source, source_id, tuple(kinds), clock
        self._unreachable_since: dict[str, float] = {}

    async def rest(self, member: TargetMember, *, was_connected: bool) -> str | None:
        """What has to be deleted before the target is gone; None if nothing, or if it is given up."""
        try:
            proxies = await self._proxies(member)
            copies = await self._copies(member)
        except errors.ApiError as error:
            return self._unreachable(member, str(error)) if was_connected else None
        self._unreachable_since.pop(member.node, None)
        if proxies:
            return f"waiting for the deletion of {proxies} pods on its virtual node"
        return f"waiting for the deletion of {copies} objects in the target" if copies else None

    def _unreachable(self, member: TargetMember, error: str) -> str | None:
        now = self._clock.now()
        left = self._unreachable_since.setdefault(member.node, now) + GIVE_UP - now
        if left > 0:
            return f"cannot delete its objects: {error}; given up after {GIVE_UP:.0f} s"
        del self._unreachable_since[member.node]
        log.warning("leaving target given up, copies are left in it", extra={"node": member.node, "error": error})
        return None

    async def _copies(self, member: TargetMember) -> int:
        if member.cluster is None:
            raise errors.Unreachable("not connected")
        if member.cluster.health.error:
            raise errors.Unreachable(member.cluster.health.error)
        found = 0
        for kind in self._kinds:
            for namespace in member.cluster.namespaces or ("",):
                found += await self._copies_of(member, member.cluster.client, kind, namespace)
        return found

    async def _copies_of(self, member: TargetMember, client: Client, kind: Resource, namespace: str) -> int:
        try:
            pages = client.pages(kind, namespace=namespace, labels=stamp.selector(self._source_id))
            copies = [one async for page in pages for one in page.items]
        except (errors.Forbidden, errors.NotFound):
            return 0  # a kind that may not be read, or does not exist, has no copies of ours
        return sum((origin := stamp.of(one)) is not None and member.node in origin.nodes for one in copies)

    async def _proxies(self, member: TargetMember) -> int:
        """The pods whose delegates are in the target. The engine deletes them, and their controllers replace them."""
        async with self._source.informers.share(PODS) as store:
            here = (pod for pod in store.values() if pod.spec.get("nodeName") == member.node)
            # One of another namespace has no delegate: a user bound it to the node.
            return sum(member.link().takes(pod.namespace) for pod in here)
