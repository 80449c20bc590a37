"""The provisioner `existing`: a cluster that exists already serves as a tenant's control plane.

It is used for VirtualClusters with a kubeconfig, in an annotation or in a Secret of the VirtualCluster's namespace or
of the root namespace. It checks that the cluster answers. When the VirtualCluster is deleted, the cluster stays, and
the objects that super clusters synced into it are removed.
"""

import asyncio
import contextlib
import datetime
from collections.abc import Iterable

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.credentials.login import base64_text
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys
from hansa.runtime import clock
from hansa.tenancy import api
from hansa.tenancy.api import BadVirtualCluster, VirtualCluster
from hansa.tenancy.operator import cleanup, pki
from hansa.tenancy.operator.pki import Pki
from hansa.tenancy.operator.provisioning import (
    DesiredControlPlane,
    ExistingKubeconfig,
    Progress,
    Ready,
    Removed,
    Requeue,
)
from hansa.tenancy.syncing import credentials
from hansa.tenancy.syncing.credentials import TenantCredentials

MISSING_KUBECONFIG = "the kubeconfig's Secret or annotation is gone; restore it"
FIELD_MANAGER = "virtualcluster/provisioner/existing"
RECHECK_SECONDS = 15.0  # between two checks of a cluster that does not answer
REQUEST_SECONDS = 10.0
CLEANUP_RETRY_SECONDS = 5.0
SETTLE_SECONDS = 2.0  # in which the syncer sees the deletion, too, and stops syncing into the tenant


class Existing:
    """The provisioner."""

    name = api.EXISTING

    def __init__(
        self,
        client: Client,
        *,
        synced: Iterable[Resource],
        user_agent: str,
        clock: clock.Clock,
        cleanup_seconds: float = 120.0,
    ) -> None:
        """`synced` are the kinds that super clusters sync up to tenants; their cleanup is given up after a while."""
        self._client, self._synced, self._user_agent = client, tuple(synced), user_agent
        self._clock, self._cleanup_seconds = clock, cleanup_seconds

    async def locate(self, desired: DesiredControlPlane) -> ExistingKubeconfig | Progress:
        """Read the kubeconfig."""
        found = await self._found(desired.vc)
        if found is None:
            name, own = credentials.secret_of(desired.vc.object), desired.vc.namespace
            message = f"waiting for Secret {name} with a kubeconfig in namespace {own} or {desired.root}: not found"
            return Progress(message, after=RECHECK_SECONDS)
        _check(found)
        return ExistingKubeconfig(base64_text(found.encoded, found.origin).read())

    async def ensure(self, desired: DesiredControlPlane, pki: Pki) -> Ready | Progress:
        """Check that the cluster answers."""
        found = await self._found(desired.vc)
        if found is None:
            return Progress(MISSING_KUBECONFIG, after=RECHECK_SECONDS)
        async with self._reached(found) as tenant:
            try:
                await tenant.get(resources.NAMESPACES, "kube-system")
            except errors.ApiError as error:
                return Progress(str(error), after=RECHECK_SECONDS)
        return Ready()

    async def remove(self, vc: VirtualCluster) -> Removed | Progress:
        """Keep the cluster; delete what super clusters synced into it, or give up after a while."""
        if not vc.status.super_clusters:
            return Removed()
        seconds = _seconds_since_deletion(vc, self._clock.wall())
        try:
            left = await self._clear(vc)
        except errors.ApiError as error:
            message = f"cannot delete the objects that super clusters synced into the tenant: {error}"
            if seconds < self._cleanup_seconds:
                message += f"; retrying until {self._cleanup_seconds:.0f} s after the deletion"
                return Progress(message, after=CLEANUP_RETRY_SECONDS)
            return Removed(f"{message}; delete them by hand, they have the label {keys.UPPER}")
        if left.deleted or seconds < SETTLE_SECONDS:
            return Progress("deleting the objects that super clusters synced into the tenant", after=SETTLE_SECONDS)
        used = ", ".join(left.used)
        kept = f"keeping CustomResourceDefinition {used}, which a super cluster synced: the tenant has objects of it"
        return Removed(kept if used else "")

    async def _clear(self, vc: VirtualCluster) -> cleanup.Cleanup:
        found = await self._found(vc)
        if found is None:
            raise errors.BadCredentials(MISSING_KUBECONFIG)
        async with self._reached(found) as tenant:
            return await cleanup.clear(tenant, self._synced, vc.status.super_clusters)

    async def run(self, requeue: Requeue) -> None:
        """Watch nothing: the periodic audit rechecks existing clusters."""
        await asyncio.get_running_loop().create_future()

    def _reached(self, found: credentials.EncodedKubeconfig) -> Client:
        return Client(TenantCredentials(found), user_agent=self._user_agent, deadline=REQUEST_SECONDS)

    async def _found(self, vc: VirtualCluster) -> credentials.EncodedKubeconfig | None:
        name = credentials.secret_of(vc.object)
        if not name:
            return credentials.find(vc.object, None)
        own = credentials.find(vc.object, await self._secret(name, vc.namespace))
        if own is None:
            return credentials.find(vc.object, await self._secret(name, vc.root))
        await self._copy(own, name, vc.root)
        return own

    async def _secret(self, name: str, namespace: str) -> Object | None:
        with contextlib.suppress(errors.NotFound):
            return await self._client.get(resources.SECRETS, name, namespace=namespace)
        return None

    async def _copy(self, found: credentials.EncodedKubeconfig, name: str, root: str) -> None:
        """Copy it to the root namespace, where the syncer and kubectl-vc read tenants' kubeconfigs."""
        data = {credentials.NAMED_SECRET_KEY: base64_text(found.encoded, found.origin).read()}
        copy = pki.secret(root, name, "Opaque", data)
        await self._client.apply(resources.SECRETS, copy, field_manager=FIELD_MANAGER, force=True)


def _seconds_since_deletion(vc: VirtualCluster, now: datetime.datetime) -> float:
    since = vc.object.metadata.deletion_timestamp or now
    return (now - since).total_seconds()


def _check(found: credentials.EncodedKubeconfig) -> None:
    try:
        found.login()
    except errors.BadCredentials as error:
        raise BadVirtualCluster(str(error)) from None
