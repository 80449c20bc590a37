"""Leases of Hansa: who leads or shares work, and since when it was not renewed."""

from typing import Final

from hansa.app.status.reading import Reader
from hansa.app.status.section import Row, Section, age, seconds_since
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.nodes import lease as node_lease
from hansa.tenancy.pool import fence

TITLE: Final = "leaders"
COLUMNS: Final = ("LEASE", "HOLDER", "RENEWED")
# Those of virtual nodes are read with the nodes, and a cluster has one for each of its own nodes.
NOT_OF_NODES: Final = f"metadata.namespace!={node_lease.NAMESPACE}"
SUFFIX: Final = "-leaderelection-lock"
PREFIX: Final = "hansa-"
REMEDY: Final = "start it again, or delete the Lease if it is gone for good"
SPARE_SECONDS: Final = 5.0  # clocks of machines differ a little


async def read(reader: Reader) -> Section:
    """The Leases of leader elections, and of replicas that share tenants."""
    found = await reader.list(resources.LEASES, fields=NOT_OF_NODES)
    rows = tuple(row(lease, reader) for lease in found.items if is_ours(lease))
    return Section(TITLE, COLUMNS, rows).cut(found.has_more)


def is_ours(lease: Object) -> bool:
    """Whether a Lease is that of an election of ours, by its name; fences and reports are other topics."""
    if keys.REACHES in lease.labels or lease.key == fence.LEASE:
        return False
    is_member = keys.SHARES in lease.labels
    return is_member or lease.name.startswith(PREFIX) or (lease.name.endswith(SUFFIX) and lease.name != SUFFIX)


def row(lease: Object, reader: Reader) -> Row:
    """One Lease."""
    spec = lease.spec
    holder, since = str(spec.get("holderIdentity") or ""), seconds_since(spec.get("renewTime"), reader.now)
    return Row((str(lease.key), holder or "-", age(since)), problem(lease, reader))


def problem(lease: Object, reader: Reader) -> str:
    """What is wrong with a Lease; "" if nothing is."""
    spec = lease.spec
    since, duration = seconds_since(spec.get("renewTime"), reader.now), float(spec.get("leaseDurationSeconds") or 0)
    if not spec.get("holderIdentity"):
        return f"no process leads, since the last one ended; {REMEDY}"
    if since is None or since > duration + SPARE_SECONDS:
        return f"no process leads: the Lease was renewed {age(since)} ago, and lasts {duration:g} s; {REMEDY}"
    return ""
