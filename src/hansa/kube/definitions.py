"""Installs CustomResourceDefinitions and waits until they are served. Programs do so at their start."""

import asyncio
from collections.abc import Iterable
from pathlib import Path

import yaml

from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.runtime.errors import HansaError

ESTABLISHED_SECONDS = 60.0
POLL_SECONDS = 0.1  # a definition is served within a second of its creation


def read(folder: Path) -> list[Object]:
    """The definitions in the YAML files of a folder."""
    return [Object.of(yaml.safe_load(path.read_text())) for path in sorted(folder.glob("*.yaml"))]


async def install(client: Client, definitions: Iterable[Object], *, field_manager: str) -> None:
    """Apply the definitions, and wait until they are served."""
    definitions = list(definitions)
    for crd in definitions:
        await client.apply(resources.CUSTOM_RESOURCE_DEFINITIONS, crd, field_manager=field_manager, force=True)
    for crd in definitions:
        await _established(client, crd.name)


async def _established(client: Client, name: str) -> None:
    try:
        async with asyncio.timeout(ESTABLISHED_SECONDS):
            while not _is_established(await client.get(resources.CUSTOM_RESOURCE_DEFINITIONS, name)):
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError:
        raise HansaError(
            f"CustomResourceDefinition {name} is not Established after {ESTABLISHED_SECONDS:.0f} s; see its conditions"
        ) from None


def _is_established(crd: Object) -> bool:
    conditions = crd.status.get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
