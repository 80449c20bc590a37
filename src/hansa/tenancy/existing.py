"""Takes a cluster that is there as a tenant's control plane: its VirtualCluster brings a kubeconfig, we look at it.

The kubeconfig stands in an annotation, or in a Secret of the VirtualCluster's own namespace or of the root namespace.
When the VirtualCluster goes, the cluster stays, without what super clusters gave it.
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
from hansa.tenancy import api, clearing, credentials, pki
from hansa.tenancy.api import BadVirtualCluster, VirtualCluster
from hansa.tenancy.credentials import TenantCredentials
from hansa.tenancy.pki import Pki
from hansa.tenancy.provisioning import Given, Gone, Order, Progress, Ready, Wake

FIELD_MANAGER = "virtualcluster/provisioner/existing"
LOOK_AGAIN = 15.0  # seconds between two looks at a cluster that does not answer
PATIENCE = 10.0  # seconds for its answer
TRY_AGAIN = 5.0  # seconds between two tries to take something back
SETTLE = 2.0  # seconds in which the syncer, which sees the deletion as soon as we do, gives nothing any more


class Existing:
    """The provisioner."""

    name = api.EXISTING

    def __init__(
        self, client: Client, *, given: Iterable[Resource], user_agent: str, clock: clock.Clock, patience: float = 120.0
    ) -> None:
        """`given` are the kinds that super clusters give to tenants; they are taken back within `patience` seconds."""
        self._client, self._given, self._user_agent = client, tuple(given), user_agent
        self._clock, self._patience = clock, patience

    async def locate(self, order: Order) -> Given | Progress:
        """Read the kubeconfig that was brought."""
        found = await self._found(order.vc)
        if found is None:
            name, places = credentials.secret_of(order.vc.object), f"{order.vc.namespace} nor in {order.root}"
            return Progress(f"secret {name} with a kubeconfig is neither in namespace {places}", after=LOOK_AGAIN)
        _check(found)
        return Given(base64_text(found.encoded, found.origin).read())

    async def ensure(self, order: Order, pki: Pki) -> Ready | Progress:
        """Ask the cluster whether it is there."""
        found = await self._found(order.vc)
        if found is None:
            return Progress("the kubeconfig was taken away", after=LOOK_AGAIN)
        async with self._reached(found) as tenant:
            try:
                await tenant.get(resources.NAMESPACES, "kube-system")
            except errors.ApiError as error:
                return Progress(str(error), after=LOOK_AGAIN)
        return Ready()

    async def remove(self, vc: VirtualCluster) -> Gone | Progress:
        """The cluster is its owner's, and stays. What it was given goes, if that can be done in time."""
        if not vc.status.super_clusters:
            return Gone()
        seconds = _leaving_for(vc, self._clock.wall())
        try:
            left = await self._clear(vc)
        except errors.ApiError as error:
            sentence = f"what super clusters gave the tenant cannot be taken back: {error}"
            if seconds < self._patience:
                return Progress(f"{sentence}; after {self._patience:.0f} s it is left there", after=TRY_AGAIN)
            return Gone(f"{sentence}; it stays there, with the label {keys.UPPER}")
        if left.deleted or seconds < SETTLE:
            return Progress("what super clusters gave the tenant is being taken back", after=SETTLE)
        used = ", ".join(left.used)
        return Gone(f"the tenant has objects of {used}, which a super cluster gave it: it stays there" if used else "")

    async def _clear(self, vc: VirtualCluster) -> clearing.Found:
        found = await self._found(vc)
        if found is None:
            raise errors.BadCredentials("the kubeconfig was taken away")
        async with self._reached(found) as tenant:
            return await clearing.clear(tenant, self._given, vc.status.super_clusters)

    async def run(self, wake: Wake) -> None:
        """Nothing of it is watched: the manager looks at everything now and then."""
        await asyncio.get_running_loop().create_future()

    def _reached(self, found: credentials.Given) -> Client:
        return Client(TenantCredentials(found), user_agent=self._user_agent, deadline=PATIENCE)

    async def _found(self, vc: VirtualCluster) -> credentials.Given | None:
        name = credentials.secret_of(vc.object)
        if not name:
            return credentials.given(vc.object, None)
        own = credentials.given(vc.object, await self._secret(name, vc.namespace))
        if own is None:
            return credentials.given(vc.object, await self._secret(name, vc.root))
        await self._copy(own, name, vc.root)
        return own

    async def _secret(self, name: str, namespace: str) -> Object | None:
        with contextlib.suppress(errors.NotFound):
            return await self._client.get(resources.SECRETS, name, namespace=namespace)
        return None

    async def _copy(self, found: credentials.Given, name: str, root: str) -> None:
        """Keep it in the root namespace as well, where all who need a tenant's kubeconfig look for it."""
        data = {credentials.NAMED_SECRET_KEY: base64_text(found.encoded, found.origin).read()}
        copy = pki.secret(root, name, "Opaque", data)
        await self._client.apply(resources.SECRETS, copy, field_manager=FIELD_MANAGER, force=True)


def _leaving_for(vc: VirtualCluster, now: datetime.datetime) -> float:
    since = vc.object.metadata.deletion_timestamp or now
    return (now - since).total_seconds()


def _check(found: credentials.Given) -> None:
    try:
        found.login()
    except errors.BadCredentials as error:
        raise BadVirtualCluster(str(error)) from None
