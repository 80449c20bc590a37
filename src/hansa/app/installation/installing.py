"""Installs a mode: checks who owns the objects, applies ours server-side, and removes what is no longer needed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from hansa.app.installation import ownership, rendering
from hansa.app.installation.inventory import MANAGER, Entry, Inventory
from hansa.app.installation.rendering import Installation, named
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.runtime.errors import HansaError

Report = Callable[[str], None]
HELM_SECRETS: Final = "owner=helm,status notin (uninstalled)"  # also of a release that failed
VOLATILE: Final = ("resourceVersion", "generation", "managedFields")  # change without a change of ours


@dataclass(frozen=True, slots=True)
class Installer:
    """Installs into one cluster; `forces` takes fields that others set, such as a number of replicas."""

    installation: Installation
    client: Client
    report: Report
    is_dry_run: bool = False
    forces: bool = False

    async def install(self, image: str) -> list[Object]:
        """Apply all objects; the objects as they are in the cluster."""
        wanted = self.installation.objects(image)
        found = {named(one): await self._find(one) for one in wanted}
        await self._check(one for one in found.values() if one is not None)
        inventory = Inventory(self.installation, self.client)
        before = await inventory.read() or []
        entries, applied = {one.uid: one for one in before}, []
        try:
            for one in wanted:
                made = await self._apply(one, found[named(one)])
                applied.append(made)
                if made.uid and ownership.is_ours(self.installation, made):
                    entries[made.uid] = Entry.of(made)
        finally:
            # Also of an attempt that failed: an older version may have created what this one does not know.
            if entries and not self.is_dry_run:
                await inventory.write([*entries.values()])
        await self._remove_old(before, applied, inventory)
        return applied

    async def _find(self, obj: Object) -> Object | None:
        try:
            found = await self.client.get(rendering.resource(obj), obj.name, namespace=obj.namespace)
        except errors.NotFound:
            return None
        if found.is_deleting:
            raise HansaError(f"{named(found)} is being deleted; run the same command again when it is gone")
        return found

    async def _check(self, found: Iterable[Object]) -> None:
        releases: set[tuple[str, str]] | None = None
        for one in found:
            if releases is None and ownership.release(one):
                releases = await self._releases()
            ownership.check(self.installation, one, releases or set())

    async def _releases(self) -> set[tuple[str, str]]:
        """The Helm releases of the cluster, as Helm keeps them by default: in Secrets."""
        pages = self.client.pages(resources.SECRETS, labels=HELM_SECRETS)
        return {(one.namespace, one.labels.get("name", "")) async for page in pages for one in page.items}

    async def _apply(self, wanted: Object, found: Object | None) -> Object:
        if found is not None and found.kind == "Namespace" and not ownership.is_ours(self.installation, found):
            self.report(f"{named(found)} exists, and is used as it is")
            return found
        if self.is_dry_run and found is None:
            self.report(f"{named(wanted)} would be created")
            return wanted  # the API server refuses a dry run in a namespace that does not exist
        if found is not None and wanted.kind == "CustomResourceDefinition":
            wanted = self._adopted(wanted, found)
        made = await self._sent(wanted)
        done = "unchanged" if found is not None and _content(made) == _content(found) else "changed"
        word = "created" if found is None else done
        self.report(f"{named(made)} {f'would be {word}' if self.is_dry_run and word == 'changed' else word}")
        return made

    def _adopted(self, wanted: Object, found: Object) -> Object:
        """A definition that others created is updated, but does not become ours: uninstall must not delete it."""
        if ownership.is_ours(self.installation, found):
            return wanted
        labels = {name: value for name, value in wanted.labels.items() if name != keys.INSTALLED}
        annotations = {name: value for name, value in wanted.annotations.items() if name != keys.INSTALLATION}
        return wanted.with_metadata(labels=labels, annotations=annotations)

    async def _sent(self, wanted: Object) -> Object:
        # Programs of older versions may have installed a definition, with a manager of their own.
        forces = self.forces or wanted.kind == "CustomResourceDefinition"
        try:
            return await self.client.apply(
                rendering.resource(wanted), wanted, field_manager=MANAGER, force=forces, dry_run=self.is_dry_run
            )
        except errors.Conflict as error:
            raise HansaError(
                f"{named(wanted)} has fields that others set: {error.said}; give --force-conflicts to overwrite them"
            ) from None

    async def _remove_old(self, before: Iterable[Entry], applied: Iterable[Object], inventory: Inventory) -> None:
        """Delete what an older version created and this one does not need."""
        needed = {one.uid for one in applied}
        kept = [Entry.of(one) for one in applied if ownership.is_ours(self.installation, one)]
        for entry in [one for one in before if one.uid not in needed]:
            if self.is_dry_run:
                self.report(f"{entry} would be deleted, since this version does not need it")
            elif await delete(self.client, self.installation, entry):
                self.report(f"{entry} deleted, since this version does not need it")
        if not self.is_dry_run:
            await inventory.write(kept)


async def delete(client: Client, installation: Installation, entry: Entry) -> bool:
    """Delete an object that this installation created, if it is the same one and still ours."""
    resource = rendering.KINDS[entry.kind]
    try:
        found = await client.get(resource, entry.name, namespace=entry.namespace)
        if found.uid != entry.uid or not ownership.is_ours(installation, found):
            return False
        await client.delete(resource, entry.name, namespace=entry.namespace, uid=entry.uid)
    except (errors.NotFound, errors.Conflict):
        return False
    return True


def _content(obj: Object) -> dict[str, object]:
    found = obj.to_dict()
    metadata = {name: value for name, value in found["metadata"].items() if name not in VOLATILE}
    return {**found, "metadata": metadata, "status": None}
