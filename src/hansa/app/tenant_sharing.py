"""Replicas of vc-syncer that share the tenants: the wiring of membership, write gate and exclusion of leaders."""

import functools
import re
import secrets
import socket
from collections.abc import Callable, Collection
from contextlib import AbstractAsyncContextManager

from hansa.app.program import Program
from hansa.control.manager import Component
from hansa.control.sharding import exclusion
from hansa.control.sharding.exclusion import Exclusion
from hansa.control.sharding.leases import Group, Keys
from hansa.control.sharding.membership import Membership
from hansa.engine.cluster import Cluster
from hansa.kube.objects import NamespacedName
from hansa.model import keys
from hansa.runtime.errors import HansaError

LONGEST_GROUP = 63  # characters of a label value
KEYS = Keys(keys.SHARES, keys.CLAIMS, keys.LEAVES)


class TenantGate:
    """The write gate of links between tenants and super clusters, in either direction."""

    def __init__(self, member: Membership, supers: Callable[[], Collection[str]]) -> None:
        self._member, self._supers = member, supers

    def may_write(self, upper: str, cluster: str) -> bool:
        return self._member.may_write(self._tenant(upper, cluster))

    def write(self, upper: str, cluster: str) -> AbstractAsyncContextManager[None]:
        return self._member.write(self._tenant(upper, cluster))

    def _tenant(self, upper: str, cluster: str) -> str:
        return cluster if upper in self._supers() else upper


def join(
    program: Program, meta: Cluster, supers: Callable[[], Collection[str]], *, group: str, lock: str, namespace: str
) -> Membership:
    """Take part in a group; `lock` is the Lease of processes that elect a leader instead."""
    if len(group) > LONGEST_GROUP:
        raise HansaError(f'--syncer-name is too long: "{group}" has more than {LONGEST_GROUP} characters')
    host = re.sub(r"[^a-z0-9-]", "-", socket.gethostname().lower()).strip("-")
    member = Membership(
        Group(group, namespace, KEYS),
        identity=f"{group}-{host}-{secrets.token_hex(4)}",
        client=meta.client,
        informers=meta.informers,
        **program.common(),
    )
    program.gate = TenantGate(member, supers)
    others = Exclusion(
        program.election(lock, meta.client, meta.informers, namespace=namespace, prefix=exclusion.PREFIX),
        NamespacedName(namespace, lock),
        informers=meta.informers,
        block=member.block,
        clock=program.clock,
    )
    program.manager.work(Component("exclusion", others.run))
    program.manager.work(Component("membership", member.left, member.leave))
    return member


def may_write(member: Membership | None, tenant: str) -> Callable[[], bool] | None:
    """The check of a tenant's client; None if this process serves all tenants."""
    return None if member is None else functools.partial(member.may_write, tenant)
