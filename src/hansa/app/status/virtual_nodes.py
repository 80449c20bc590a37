"""Virtual nodes: their lower cluster, whether they are Ready, and their last heartbeat."""

from typing import Final

from hansa.app.status.reading import Reader
from hansa.app.status.section import Row, Section, age, conditions, said, seconds_since
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.nodes import lease as node_lease
from hansa.nodes import manifest

TITLE: Final = "virtual nodes"
COLUMNS: Final = ("NODE", "LOWER CLUSTER", "READY", "HEARTBEAT", "PODS")
SPARE_SECONDS: Final = 5.0  # clocks of machines differ a little


async def read(reader: Reader) -> Section:
    """All virtual nodes."""
    nodes = await reader.list(resources.NODES, labels=manifest.SELECTOR)
    leases = (
        await reader.list(resources.LEASES, namespace=node_lease.NAMESPACE, labels=manifest.SELECTOR)
        if nodes.items
        else nodes
    )
    renewed = {lease.name: lease for lease in leases.items}
    rows = tuple(row(node, renewed.get(node.name), reader) for node in nodes.items)
    return Section(TITLE, COLUMNS, rows).cut(nodes.has_more)


def row(node: Object, lease: Object | None, reader: Reader) -> Row:
    """One virtual node with its Lease."""
    status = node.status
    ready = conditions(status).get("Ready", {})
    spec = lease.spec if lease else {}
    since = seconds_since(spec.get("renewTime"), reader.now)
    cells = (
        node.name,
        node.annotations.get(keys.NODE_LOWER, "") or node.labels.get(keys.CLUSTER_ID, "") or "-",
        str(ready.get("status", "-")),
        age(since),
        str((status.get("allocatable") or {}).get("pods", "-")),
    )
    if since is not None and since > float(spec.get("leaseDurationSeconds") or 0) + SPARE_SECONDS:
        return Row(
            cells, f"no heartbeat for {age(since)}: the program that runs it has ended, or does not reach this cluster"
        )
    return Row(cells, "" if ready.get("status") == "True" else f"not ready: {said(ready)}")
