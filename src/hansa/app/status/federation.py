"""Sources and targets of a federation."""

from typing import Final

from hansa.app.status.reading import Reader
from hansa.app.status.section import Row, Section, age, conditions, said, seconds_since
from hansa.federation import api
from hansa.federation.conditions import READY
from hansa.kube.objects import Object

TARGETS: Final = "targets"
SOURCES: Final = "sources"
TARGET_COLUMNS: Final = ("TARGET", "READY", "VIRTUAL NODE", "AGE")
SOURCE_COLUMNS: Final = ("SOURCE", "READY", "ACCOUNT", "AGE")
FIRST_SECONDS: Final = 60.0  # for an agent to reconcile a new object


async def read_targets(reader: Reader) -> Section:
    """Targets and ClusterTargets."""
    some, others = await reader.list(api.TARGETS), await reader.list(api.CLUSTER_TARGETS)
    rows = tuple(_row(one, str(one.status.get("node") or "-"), reader) for one in [*some.items, *others.items])
    return Section(TARGETS, TARGET_COLUMNS, rows).cut(some.has_more or others.has_more)


async def read_sources(reader: Reader) -> Section:
    """Sources and ClusterSources."""
    some, others = await reader.list(api.SOURCES), await reader.list(api.CLUSTER_SOURCES)
    rows = tuple(_row(one, account(one), reader) for one in [*some.items, *others.items])
    return Section(SOURCES, SOURCE_COLUMNS, rows).cut(some.has_more or others.has_more)


def account(source: Object) -> str:
    """Whom a source lets in."""
    spec = source.spec
    named = spec.get("serviceAccount") or {}
    return str(spec.get("userName") or spec.get("serviceAccountName") or named.get("name") or "-")


def _row(one: Object, cell: str, reader: Reader) -> Row:
    ready = conditions(one.status).get(READY)
    created = seconds_since(one.metadata.creation_timestamp, reader.now)
    cells = (str(one.key), str(ready.get("status", "-")) if ready else "-", cell, age(created))
    if ready is None:
        is_late = (created or 0.0) > FIRST_SECONDS
        return Row(cells, "no agent has reconciled it; see whether one is running for this cluster" if is_late else "")
    return Row(cells, "" if ready.get("status") == "True" else f"not ready: {said(ready)}")
