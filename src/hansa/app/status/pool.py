"""Super clusters of a pool: whether they are reachable from here and from vc-syncer, and how old their fences are.

Each is read with the kubeconfig of its Secret, as vc-scheduler does.
"""

import asyncio
from dataclasses import replace
from typing import Final

from hansa.app.program import agent
from hansa.app.status.reading import Reader
from hansa.app.status.section import Row, Section, age, seconds_since
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.credentials.secret import SecretCredentials
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.runtime import tasks
from hansa.scheduling.pooling import pool_members
from hansa.tenancy.pool import fence

TITLE: Final = "super clusters"
COLUMNS: Final = ("SUPER CLUSTER", "PHASE", "VERSION", "VC-SYNCER", "FENCE", "AGENT")
CONCURRENT: Final = 16  # super clusters that are read at a time
SHARE: Final = 0.6  # of the deadline of the topic, for each super cluster
REPORT_SECONDS: Final = 90.0  # without a report; vc-syncer reports six times in --lost-after, which is 60 s by default


async def read(reader: Reader) -> Section:
    """All Clusters of the meta cluster."""
    clusters = [one async for one in pool_members.all_of(reader.client)]
    if not clusters:
        return Section(TITLE)
    leases = await reader.list(resources.LEASES, labels=keys.REACHES)
    reports = {lease.labels[keys.REACHES]: lease for lease in leases.items}

    async def one(cluster: Object) -> Row:
        return await _row(cluster, reports.get(cluster.name), reader)

    return Section(TITLE, COLUMNS, tuple(await tasks.gather(one, clusters, at_most=CONCURRENT)))


async def _row(cluster: Object, report: Object | None, reader: Reader) -> Row:
    phase = str(cluster.status.get("phase") or "-")
    reported = seconds_since(report.spec.get("renewTime"), reader.now) if report else None
    has_agent = "yes" if cluster.annotations.get(keys.AGENT) == "true" else "no"
    version, lease, problem = "-", None, ""
    try:
        async with asyncio.timeout(reader.deadline * SHARE):
            version, lease = await _below(cluster, reader)
    except TimeoutError:
        problem = f"no answer within {reader.deadline * SHARE:g} s"
    except errors.ApiError as error:
        problem = str(error)
    since = seconds_since(lease.spec.get("renewTime"), reader.now) if lease else None
    cells = (str(cluster.key), phase, version, age(reported), age(since), has_agent)
    return Row(cells, problem or problem_of(cluster, lease, report, reader))


def problem_of(cluster: Object, lease: Object | None, report: Object | None, reader: Reader) -> str:
    """What is wrong with a super cluster that is reachable; "" if nothing is."""
    phase = cluster.status.get("phase")
    if cluster.annotations.get(keys.LEAVING) == "true":
        return "is leaving the pool: hansa leave has not finished"
    if phase != pool_members.Phase.PROVISIONED:
        return f"has phase {phase}, and so nothing is placed there" if phase else "has no phase: it is not in the pool"
    terms = fence.terms(lease)
    since = seconds_since(terms.renewal, reader.now) if terms else None
    if terms and since is not None and since > terms.duration:
        return f"its fence was renewed {age(since)} ago, and lasts {terms.duration:g} s: its pods end, or did so"
    reported = seconds_since(report.spec.get("renewTime"), reader.now) if report else None
    if reported is not None and reported > REPORT_SECONDS:
        return f"no vc-syncer has reached it for {age(reported)}"
    return ""


async def _below(cluster: Object, reader: Reader) -> tuple[str, Object | None]:
    """The version of a super cluster, and its fence."""
    secret = await reader.client.get(resources.SECRETS, cluster.name, namespace=cluster.namespace)
    credentials = SecretCredentials(secret, key=pool_members.SECRET_KEY)
    async with Client(credentials, user_agent=agent("status"), deadline=reader.deadline * SHARE) as client:
        below = replace(reader, client=client)
        found = await below.find(resources.LEASES, fence.LEASE.name, namespace=fence.LEASE.namespace)
        return await client.version(), found
