"""Whether tenants have a DNS: Service kube-system/kube-dns with ready endpoints in their control planes."""

from dataclasses import replace
from typing import Final

from hansa.app.doctor import finding, surveying, webhooks
from hansa.app.doctor.finding import Finding
from hansa.app.doctor.surveying import Survey
from hansa.app.doctor.visiting import Role, Visit
from hansa.app.program import agent
from hansa.app.status.reading import Reader
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.model.translation.tenant.pod.dns import DNS_SERVICE
from hansa.runtime import tasks
from hansa.runtime.errors import HansaError

CHECK: Final = "DNS"
WHY: Final = "pods of the tenant cannot resolve the names of its Services"


async def examine(surveyed: Survey, reader: Reader) -> list[Finding]:
    """The findings about all tenants that answer."""
    reached = [one for one in surveyed.visits if one.role is Role.TENANT and one.error is None]
    return await tasks.gather(lambda one: _tenant(one, surveyed, reader), reached, at_most=surveying.CONCURRENT)


async def _tenant(visit: Visit, surveyed: Survey, reader: Reader) -> Finding:
    credentials = surveyed.credentials(visit)
    assert credentials is not None  # it answered
    try:
        async with Client(credentials, user_agent=agent("doctor"), deadline=reader.deadline) as client:
            inside = replace(reader, client=client)
            if await inside.find(resources.SERVICES, DNS_SERVICE.name, namespace=DNS_SERVICE.namespace) is None:
                return finding.problem(
                    CHECK,
                    f"{visit} has no Service {DNS_SERVICE}",
                    why=WHY,
                    remedy="vc-syncer creates CoreDNS unless --tenant-dns=false is given: see its flags and log, or"
                    " install a DNS of your own in the tenant (docs/tenants.md)",
                )
            ready = await webhooks.ready_endpoints(inside, DNS_SERVICE)
    except HansaError as error:
        return finding.unknown(CHECK, f"{visit}: {error}", why=WHY, remedy="run this command again")
    if not ready:
        return finding.problem(
            CHECK,
            f"{visit}: Service {DNS_SERVICE} has no ready endpoint",
            why=WHY,
            remedy=f'see why its pods are not ready: "kubectl vc exec {visit.name} -- kubectl -n kube-system'
            ' describe pods -l k8s-app=kube-dns"',
        )
    return finding.fine(CHECK, f"{visit} has Service {DNS_SERVICE} with {ready} ready endpoints")
