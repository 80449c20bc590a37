"""Pods of the Pod Security Standards: what the admission of a real API server refuses, our restrictions refuse as well.

The table in docs/security.md is what this test finds.
"""

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from eventually import eventually
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.translation.tenant.tenant_settings import Allowance, PodSecurity
from pod_security import CASES, SPEC, Case
from tenants import a_link, an_object, refusal

DOCUMENT = Path("docs/security.md")
HEADING = "## Pod Security baseline against ours"
COLUMNS = ("accepted", "refused by both", "refused by Hansa only", "refused by both with `restricted`")
LEVELS = (PodSecurity.BASELINE, PodSecurity.RESTRICTED)
OFFERED = an_object("StorageClass", "offered", labels={keys.SUPER_PUBLIC: "true"})
EPHEMERAL = "ephemeralContainers"
Namespaces = dict[PodSecurity, str]


@pytest.fixture
async def namespaces(client: Client) -> AsyncIterator[Namespaces]:
    """A namespace for each level, with a pod that meets it."""
    made = {level: f"{level}-{secrets.token_hex(4)}" for level in LEVELS}
    for level, name in made.items():
        labels = {keys.POD_SECURITY_ENFORCED: level}
        await client.create(resources.NAMESPACES, Object.of({"metadata": {"name": name, "labels": labels}}))
    for name in made.values():
        await eventually(lambda name=name: client.get(resources.SERVICE_ACCOUNTS, "default", namespace=name))
        await client.create(resources.PODS, Object.of({"metadata": {"name": "base"}, "spec": SPEC}), namespace=name)
    yield made
    for name in made.values():
        await client.delete(resources.NAMESPACES, name)


async def is_refused(client: Client, namespace: str, pod: Object, where: str) -> bool | None:
    """Whether admission refuses a pod; None if it is not valid. Ephemeral containers are added to the pod there."""
    try:
        if where == EPHEMERAL:
            patch = {"spec": {EPHEMERAL: pod.spec[EPHEMERAL]}}
            way = EPHEMERAL.lower()
            await client.patch(resources.PODS, "base", patch, namespace=namespace, subresource=way, dry_run=True)
        else:
            await client.create(resources.PODS, pod.with_metadata(namespace=namespace), dry_run=True)
    except errors.Denied as error:
        return "violates PodSecurity" in str(error)
    except errors.Invalid:
        return None
    return False


async def column_of(client: Client, namespaces: Namespaces, case: Case) -> str:
    """The column of a case."""
    verdicts = set()
    for where, pod in case.pods():
        upstream = await asyncio.gather(*(is_refused(client, namespaces[level], pod, where) for level in LEVELS))
        ours = [bool(refusal(pod, a_link(below=[OFFERED], pod_security=level))) for level in LEVELS]
        if None not in upstream:
            for level, theirs, own in zip(LEVELS, upstream, ours, strict=True):
                assert own or not theirs, f"{case.shown} in {where} is refused by {level} and not by us"
            verdicts.add((*upstream, *ours))
    assert len(verdicts) == 1, f"{case.control}, {case.shown}: {verdicts} in different lists of containers"
    return COLUMNS[{(0, 0, 0, 0): 0, (1, 1, 1, 1): 1, (0, 1, 0, 1): 3}.get(verdicts.pop(), 2)]


def allowances(case: Case) -> Iterator[Allowance]:
    """The allowances that lift the restriction of a case."""
    _, pod = next(case.pods())
    allowed: frozenset[Allowance] = frozenset()
    while named := re.search(r"allow=(\w+)", refusal(pod, a_link(below=[OFFERED], allowed=allowed))):
        yield Allowance(named[1])
        allowed |= {Allowance(named[1])}


def rows(columns: list[tuple[Case, str]]) -> Iterator[str]:
    """The lines of the table."""
    yield f"| control | {' | '.join(COLUMNS)} | allowed by |"
    yield f"|{'---|' * (len(COLUMNS) + 2)}"
    for control in dict.fromkeys(case.control for case in CASES):
        cells: dict[str, dict[str, None]] = {column: {} for column in (*COLUMNS, "allowed by")}
        for case, column in columns:
            if case.control == control:
                cells[column][f"`{case.shown}`"] = None
                cells["allowed by"] |= {f"`{one}`": None for one in allowances(case)}
        texts = (", ".join(cell) for cell in cells.values())
        yield f"| {' | '.join((control, *texts))} |".replace("  ", " ")


async def test_what_pod_security_admission_refuses_is_refused(client: Client, namespaces: Namespaces) -> None:
    found = [(case, await column_of(client, namespaces, case)) for case in CASES]
    table = "\n".join(rows(found))
    written = DOCUMENT.read_text().partition(HEADING)[2].partition("|")
    assert (written[1] + written[2]).startswith(table + "\n"), f"the table in {DOCUMENT} should be:\n{table}"
