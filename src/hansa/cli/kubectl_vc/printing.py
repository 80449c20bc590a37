"""Formats VirtualClusters for `kubectl vc list` and `kubectl vc get`. Pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from hansa.tenancy import api

COLUMNS = ("NAMESPACE", "NAME", "PHASE", "CLUSTERVERSION", "ROOTNAMESPACE", "AGE")


def table(vcs: Sequence[api.VirtualCluster], now: datetime) -> str:
    """A table with a row for each."""
    rows = [COLUMNS] + [
        (
            vc.namespace,
            vc.name,
            "Terminating" if vc.is_deleting else vc.status.phase or "-",
            vc.spec.cluster_version_name,
            vc.status.cluster_namespace or "-",
            age(now - made) if (made := vc.object.metadata.creation_timestamp) else "-",
        )
        for vc in sorted(vcs, key=lambda one: one.key)
    ]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


def description(vc: api.VirtualCluster) -> str:
    """The spec, status and conditions of one."""
    facts = {
        "Name": str(vc.key),
        "Phase": vc.status.phase or "-",
        "Message": vc.status.message or "-",
        "Cluster version": vc.spec.cluster_version_name,
        "Root namespace": vc.status.cluster_namespace or "-",
        "Cluster domain": vc.domain,
        "Service range": str(vc.service_cidr or "-"),
    }
    width = max(map(len, facts)) + 1
    lines = [f"{name + ':':<{width}}  {value}" for name, value in facts.items()]
    conditions = [f"  {one.type}: {one.status}, {one.reason}: {one.message}" for one in vc.status.conditions]
    return "\n".join([*lines, "Conditions:", *(conditions or ["  none"])])


def age(span: timedelta) -> str:
    """An age in kubectl's format, with at most two units."""
    seconds = max(0, int(span.total_seconds()))
    for unit, size, below, small in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if seconds >= size:
            rest = seconds % size // small
            return (
                f"{seconds // size}{unit}{rest}{below}" if rest and seconds < 10 * size else f"{seconds // size}{unit}"
            )
    return f"{seconds}s"
