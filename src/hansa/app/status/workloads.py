"""Deployments, DaemonSets and StatefulSets that run Hansa's image, and how many of their pods are ready."""

from collections.abc import Mapping
from typing import Any, Final

from hansa.app.status.reading import Listed, Reader
from hansa.app.status.section import Row, Section, age, conditions, seconds_since
from hansa.kube import resources
from hansa.kube.objects import Object

TITLE: Final = "components"
COLUMNS: Final = ("COMPONENT", "KIND", "READY", "IMAGE", "AGE")
IMAGE: Final = "hansa"
START_SECONDS: Final = 120.0  # for the pods of a new one to start
KINDS: Final = (resources.DEPLOYMENTS, resources.DAEMON_SETS, resources.STATEFUL_SETS)


async def read(reader: Reader) -> Section:
    """All that run our image."""
    found = await found_in(reader)
    return Section(TITLE, COLUMNS, tuple(row(one, reader) for one in found.items)).cut(found.has_more)


async def found_in(reader: Reader) -> Listed:
    """The objects."""
    listed = [await reader.list(kind) for kind in KINDS]
    # The items of a list have no kind of their own.
    ours = [
        one if one.kind else _typed(one, kind.kind, kind.api_version)
        for kind, found in zip(KINDS, listed, strict=True)
        for one in found.items
        if image(one)
    ]
    return Listed(ours, any(found.has_more for found in listed))


def _typed(one: Object, kind: str, api_version: str) -> Object:
    return Object.of({**one.to_dict(), "kind": kind, "apiVersion": api_version})


def containers(workload: Object) -> list[Mapping[str, Any]]:
    """The containers of its pods."""
    found: list[Mapping[str, Any]] = ((workload.spec.get("template") or {}).get("spec") or {}).get("containers") or []
    return found


def image(workload: Object) -> str:
    """The image of Hansa that it runs; "" if it runs another."""
    images = (str(one.get("image", "")) for one in containers(workload))
    return next((one for one in images if one.rpartition("/")[2].partition(":")[0].partition("@")[0] == IMAGE), "")


def row(workload: Object, reader: Reader) -> Row:
    """One workload."""
    ready, wanted = counts(workload)
    created = seconds_since(workload.metadata.creation_timestamp, reader.now)
    cells = (str(workload.key), workload.kind, f"{ready}/{wanted}", image(workload), age(created))
    if ready >= wanted or (created or 0.0) < START_SECONDS:
        return Row(cells)
    stuck = conditions(workload.status).get("Progressing", {})
    reason = f": {stuck.get('message')}" if stuck.get("status") == "False" else ""
    place = f"kubectl -n {workload.namespace} describe pods"
    return Row(cells, f"{ready} of {wanted} pods are ready{reason}; see {place}")


def counts(workload: Object) -> tuple[int, int]:
    """The number of ready pods, and of wanted ones."""
    status = workload.status
    if workload.kind == resources.DAEMON_SETS.kind:
        return int(status.get("numberReady") or 0), int(status.get("desiredNumberScheduled") or 0)
    replicas = workload.spec.get("replicas")
    return int(status.get("readyReplicas") or 0), 1 if replicas is None else int(replicas)
