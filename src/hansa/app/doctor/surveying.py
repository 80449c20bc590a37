"""Visits all API servers that a cluster's objects name: those of tenants, super clusters and targets."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

from hansa.app.doctor import visiting
from hansa.app.doctor.visiting import Role, Visit
from hansa.app.status.reading import Reader
from hansa.federation import api as federation
from hansa.federation import target_credentials
from hansa.kube import errors, resources
from hansa.kube.credentials import Credentials
from hansa.kube.credentials.secret import SecretCredentials
from hansa.kube.objects import Object
from hansa.runtime import tasks
from hansa.runtime.clock import Clock
from hansa.runtime.errors import HansaError
from hansa.scheduling.pooling import pool_members
from hansa.tenancy import api as tenancy
from hansa.tenancy.api import VirtualCluster
from hansa.tenancy.syncing import credentials as tenant_credentials
from hansa.tenancy.syncing.credentials import TenantCredentials

CONCURRENT: Final = 16  # servers that are visited at a time
T = TypeVar("T", Object, VirtualCluster)


@dataclass(frozen=True, slots=True)
class Remote:
    """A server that an object of the cluster names."""

    role: Role
    name: str
    credentials: Credentials | errors.ApiError


@dataclass(frozen=True, slots=True)
class Survey:
    """The servers that objects of a cluster name, and visits to them and to the cluster itself."""

    remotes: list[Remote]
    visits: list[Visit]
    unread: list[str]

    def credentials(self, visit: Visit) -> Credentials | None:
        """The credentials of a server that answered."""
        found = (one for one in self.remotes if (one.role, one.name) == (visit.role, visit.name))
        remote = next(found, None)
        return remote.credentials if remote and isinstance(remote.credentials, Credentials) else None


async def survey(reader: Reader, clock: Clock) -> Survey:
    """Find and visit all servers."""
    remotes, unread = [Remote(Role.CLUSTER, "itself", reader.client.credentials)], list[str]()
    for find in (_tenants, _supers, _targets):
        try:
            async with asyncio.timeout(reader.deadline):
                remotes += await find(reader)
        except (HansaError, TimeoutError) as error:
            unread.append(str(error) or f"not read within {reader.deadline:g} s")

    async def one(remote: Remote) -> Visit:
        if isinstance(remote.credentials, errors.ApiError):
            return Visit(remote.role, remote.name, error=remote.credentials)
        return await visiting.visit(remote.role, remote.name, remote.credentials, deadline=reader.deadline, clock=clock)

    return Survey(remotes, await tasks.gather(one, remotes, at_most=CONCURRENT), unread)


async def _tenants(reader: Reader) -> list[Remote]:
    running = tenancy.running((await reader.list(tenancy.VIRTUAL_CLUSTERS)).items)
    kept = [one for one in running if not one.is_deleting]
    return await _remotes(Role.TENANT, kept, _of_tenant, reader)


async def _of_tenant(reader: Reader, vc: VirtualCluster) -> Credentials:
    name = tenant_credentials.secret_of(vc.object)
    secret = await reader.client.get(resources.SECRETS, name, namespace=vc.root) if name else None
    config = tenant_credentials.find(vc.object, secret)
    if config is None:
        raise errors.BadCredentials(f"Secret {vc.root}/{name} has no kubeconfig")
    return TenantCredentials(config)


async def _supers(reader: Reader) -> list[Remote]:
    clusters = [one async for one in pool_members.all_of(reader.client)]
    return await _remotes(Role.SUPER, clusters, _of_super, reader)


async def _of_super(reader: Reader, cluster: Object) -> Credentials:
    secret = await reader.client.get(resources.SECRETS, cluster.name, namespace=cluster.namespace)
    return SecretCredentials(secret, key=pool_members.SECRET_KEY)


async def _targets(reader: Reader) -> list[Remote]:
    found = [*(await reader.list(federation.TARGETS)).items, *(await reader.list(federation.CLUSTER_TARGETS)).items]
    return await _remotes(Role.TARGET, found, _of_target, reader)


async def _of_target(reader: Reader, obj: Object) -> Credentials:
    try:
        target = federation.target(obj)
        if (name := target.secret) is None:
            return reader.client.credentials  # the cluster itself
        secret = await reader.find(resources.SECRETS, name.name, namespace=name.namespace)
        return target_credentials.of(target, target_credentials.checked(target, name, secret))
    except federation.BadObject as error:
        raise errors.BadCredentials(str(error)) from None


async def _remotes(
    role: Role, found: Iterable[T], credentials: Callable[[Reader, T], Awaitable[Credentials]], reader: Reader
) -> list[Remote]:
    async def one(named: T) -> Remote:
        name = named.name if role is Role.SUPER else str(named.key)
        try:
            return Remote(role, name, await credentials(reader, named))
        except errors.ApiError as error:
            return Remote(role, name, error)

    return await tasks.gather(one, found, at_most=CONCURRENT)
