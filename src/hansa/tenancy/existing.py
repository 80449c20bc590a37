"""Takes a cluster that is there as a tenant's control plane: its VirtualCluster brings a kubeconfig, we look at it.

The kubeconfig stands in an annotation, or in a Secret of the VirtualCluster's own namespace or of the root namespace.
"""

import asyncio
import contextlib

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.credentials.login import base64_text
from hansa.kube.objects import Object
from hansa.tenancy import credentials, pki
from hansa.tenancy.api import BadVirtualCluster, VirtualCluster
from hansa.tenancy.credentials import TenantCredentials
from hansa.tenancy.pki import Pki
from hansa.tenancy.provisioning import Given, Gone, Order, Progress, Ready, Wake

FIELD_MANAGER = "virtualcluster/provisioner/existing"
LOOK_AGAIN = 15.0  # seconds between two looks at a cluster that does not answer
PATIENCE = 10.0  # seconds for its answer


class Existing:
    """The provisioner."""

    name = "existing"

    def __init__(self, client: Client, *, user_agent: str) -> None:
        self._client, self._user_agent = client, user_agent

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
        async with Client(TenantCredentials(found), user_agent=self._user_agent, deadline=PATIENCE) as tenant:
            try:
                await tenant.get(resources.NAMESPACES, "kube-system")
            except errors.ApiError as error:
                return Progress(str(error), after=LOOK_AGAIN)
        return Ready()

    async def remove(self, vc: VirtualCluster) -> Gone:
        """The cluster is its owner's, and stays."""
        return Gone()

    async def run(self, wake: Wake) -> None:
        """Nothing of it is watched: the manager looks at everything now and then."""
        await asyncio.get_running_loop().create_future()

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


def _check(found: credentials.Given) -> None:
    try:
        found.login()
    except errors.BadCredentials as error:
        raise BadVirtualCluster(str(error)) from None
