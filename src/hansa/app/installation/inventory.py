"""What an installation created: a ConfigMap in its namespace with kind, name and uid of each object."""

from dataclasses import dataclass
from typing import Final

import msgspec

from hansa.app.installation.rendering import KINDS, Installation
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.runtime.errors import HansaError

MANAGER: Final = "hansa-install"
FIELD: Final = "objects"


class Entry(msgspec.Struct, frozen=True, order=True):
    """One object that was created."""

    kind: str
    namespace: str
    name: str
    uid: str

    @property
    def key(self) -> NamespacedName:
        return NamespacedName(self.namespace, self.name)

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"

    @classmethod
    def of(cls, obj: Object) -> "Entry":
        """The entry of an object of the cluster."""
        return cls(obj.kind, obj.namespace, obj.name, obj.uid)


@dataclass(frozen=True, slots=True)
class Inventory:
    """The inventory of one installation."""

    installation: Installation
    client: Client

    @property
    def key(self) -> NamespacedName:
        """The ConfigMap."""
        return NamespacedName(self.installation.namespace, f"hansa-installed-{self.installation.mode}")

    async def read(self) -> list[Entry] | None:
        """The entries in the order of their creation; None if nothing is installed."""
        try:
            found = await self.client.get(resources.CONFIG_MAPS, self.key.name, namespace=self.key.namespace)
            entries = msgspec.json.decode((found.get("data") or {}).get(FIELD, "[]"), type=list[Entry])
        except errors.NotFound:
            return None
        except msgspec.DecodeError as error:
            raise HansaError(f"ConfigMap {self.key} cannot be read: {error}; correct or delete it") from None
        return [one for one in entries if one.kind in KINDS]

    async def write(self, entries: list[Entry]) -> None:
        """Replace the entries."""
        metadata = {"namespace": self.key.namespace, "name": self.key.name}
        data = {FIELD: msgspec.json.encode(entries).decode()}
        made = Object.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        obj = self.installation.stamped(made)
        await self.client.apply(resources.CONFIG_MAPS, obj, field_manager=MANAGER, force=True)

    async def remove(self) -> None:
        """Delete the ConfigMap."""
        try:
            found = await self.client.get(resources.CONFIG_MAPS, self.key.name, namespace=self.key.namespace)
            await self.client.delete(resources.CONFIG_MAPS, self.key.name, namespace=self.key.namespace, uid=found.uid)
        except errors.NotFound:
            return
