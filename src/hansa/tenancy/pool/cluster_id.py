"""The id of a super cluster in its pool, which placements name. It is in a ConfigMap of the super cluster."""

import re
from typing import Final

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.runtime.errors import HansaError

CONFIG_MAP: Final = NamespacedName("kube-system", "supercluster-info")
FIELD: Final = "id"
LONGEST: Final = 50  # characters; the id becomes a part of names and of annotation keys
_FORM: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


class BadId(HansaError):
    """An id is invalid or missing."""


def checked(text: str) -> str:
    """The id, if it is valid."""
    if len(text) > LONGEST or not _FORM.fullmatch(text):
        raise BadId(
            f'"{text}" cannot be the id of a super cluster: use at most {LONGEST} lower-case letters, digits and "-",'
            " with a letter or a digit at both ends"
        )
    return text


def config_map(id_: str) -> Object:
    """The ConfigMap with the id."""
    metadata = {"namespace": CONFIG_MAP.namespace, "name": CONFIG_MAP.name}
    return Object.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {FIELD: id_}})


async def find(client: Client) -> str:
    """The id of a cluster; empty if it has none."""
    try:
        found = await client.get(resources.CONFIG_MAPS, CONFIG_MAP.name, namespace=CONFIG_MAP.namespace)
    except errors.NotFound:
        return ""
    return str((found.get("data") or {}).get(FIELD, ""))


async def read(client: Client) -> str:
    """The id of a super cluster that must have one."""
    if not (id_ := await find(client)):
        raise BadId(f'the super cluster has no id: ConfigMap {CONFIG_MAP} is missing; create it with "hansa join"')
    return checked(id_)
