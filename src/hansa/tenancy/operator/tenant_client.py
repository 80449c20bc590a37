"""A client of a tenant's API server, as its administrator, for a control plane that has just started.

Used by the provisioners that issue its certificates.
"""

from hansa.kube import errors, readiness
from hansa.kube.client import Client
from hansa.kube.credentials import Credentials, kubeconfig
from hansa.tenancy.operator.pki import ADMIN, Pki

REQUEST_SECONDS = 10.0
ANSWER_SECONDS = 2.0  # of a server that may not be reachable from here


def connect(pki: Pki, *, deadline: float = REQUEST_SECONDS) -> Client:
    """The client."""
    credentials = Credentials(lambda: kubeconfig.parse(pki.kubeconfigs[ADMIN], origin="the tenant's kubeconfig"))
    return Client(credentials, user_agent="hansa-vc-manager", deadline=deadline)


async def refuses_pods(pki: Pki) -> bool:
    """Whether the tenant would refuse pods, because its controllers have just started.

    No answer is no reason to wait: a manager that runs outside of the meta cluster does not reach its pods.
    """
    async with connect(pki, deadline=ANSWER_SECONDS) as client:
        try:
            return not await readiness.can_create_pods(client)
        except errors.ApiError:
            return False
