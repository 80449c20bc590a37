"""Uninstalls a mode: exactly what install created goes; definitions and tenants' data stay unless they are purged."""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from hansa.app.installation import ownership, rendering
from hansa.app.installation.installing import delete
from hansa.app.installation.inventory import Entry, Inventory
from hansa.app.installation.rendering import Installation, Mode
from hansa.app.status import leaders
from hansa.federation import api as federation
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.decoding import Page
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.runtime.errors import HansaError
from hansa.tenancy.api import VIRTUAL_CLUSTERS

DATA: Final = (VIRTUAL_CLUSTERS, federation.TARGETS, federation.CLUSTER_TARGETS, federation.SOURCES)
TENANT_MODES: Final = frozenset({Mode.VIRTUALCLUSTER, Mode.POOL})  # VirtualClusters are of no other mode
POLL_SECONDS: Final = 0.5
SHOWN: Final = 5  # names in a message
# Kinds that keep a namespace from being deleted, if others have objects of them there.
CONTENT: Final = (
    *(resources.PODS, resources.DEPLOYMENTS, resources.STATEFUL_SETS, resources.DAEMON_SETS, resources.JOBS),
    *(resources.SERVICES, resources.SECRETS, resources.CONFIG_MAPS, resources.PERSISTENT_VOLUME_CLAIMS),
)
AUTOMATIC: Final = frozenset({"kube-root-ca.crt"})  # what Kubernetes itself puts into each namespace


@dataclass(frozen=True, slots=True)
class Remover:
    """Uninstalls from one cluster."""

    installation: Installation
    client: Client
    report: Callable[[str], None]
    is_dry_run: bool = False
    purges: bool = False

    async def uninstall(self, *, deadline: float) -> None:
        """Remove everything that goes."""
        inventory = Inventory(self.installation, self.client)
        entries = await self._entries(inventory)
        if self.purges and self.installation.mode in TENANT_MODES and not _of(entries, "Deployment"):
            await self._refuse_purge()
        if not entries:
            self.report(
                f"nothing to do: mode {self.installation.mode} is not installed in {self.installation.namespace}"
            )
            return
        if self.purges and self.installation.mode in TENANT_MODES:
            await self._purge(deadline)
        definitions, namespaces = _of(entries, "CustomResourceDefinition"), _of(entries, "Namespace")
        programs = _of(entries, "Deployment", "DaemonSet")
        others = [one for one in entries if one not in (*definitions, *namespaces, *programs)]
        await self._end(programs, deadline)  # before their rights, so that they can release their Leases
        for entry in reversed(others):
            await self._delete(entry)
        await self._definitions(definitions)
        kept = await self._namespace(namespaces, deadline)
        if not self.is_dry_run and (kept or not namespaces):
            await inventory.remove()

    async def is_installed(self) -> bool:
        """Whether there is anything of this installation."""
        return bool(await self._entries(Inventory(self.installation, self.client)))

    async def _entries(self, inventory: Inventory) -> list[Entry]:
        """What the inventory has, and what an attempt created that was killed before it wrote one."""
        entries = {one.uid: one for one in await inventory.read() or []}
        for one in self.installation.objects(rendering.IMAGE):
            try:
                found = await self.client.get(rendering.resource(one), one.name, namespace=one.namespace)
            except errors.NotFound:
                continue
            if ownership.is_ours(self.installation, found):
                entries.setdefault(found.uid, Entry.of(found))
        return [*entries.values()]

    async def _refuse_purge(self) -> None:
        """Without vc-manager, control planes would stay."""
        if found := await self._all(VIRTUAL_CLUSTERS):
            raise HansaError(
                f"{len(found)} VirtualClusters are kept: {_names(found)}; only vc-manager ends them: run hansa install,"
                " and then this command again"
            )

    async def _purge(self, deadline: float) -> None:
        """Delete tenants while vc-manager is there to end their control planes, and wait until it has."""
        for one in await self._all(VIRTUAL_CLUSTERS):
            if self.is_dry_run:
                self.report(f"VirtualCluster {one.key} would be deleted, with its control plane")
                continue
            await self.client.delete(VIRTUAL_CLUSTERS, one.name, namespace=one.namespace, uid=one.uid)
            self.report(f"VirtualCluster {one.key} is being deleted, with its control plane")
        left: list[Object] = []
        try:
            async with asyncio.timeout(deadline):
                while not self.is_dry_run and (left := await self._all(VIRTUAL_CLUSTERS)):
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            raise HansaError(
                f"VirtualClusters are still being deleted after {deadline:g} s: {_names(left)}; check that vc-manager"
                " is running, and run the same command again"
            ) from None

    async def _delete(self, entry: Entry) -> None:
        if self.is_dry_run:
            self.report(f"{entry} would be deleted")
        elif await delete(self.client, self.installation, entry):
            self.report(f"{entry} deleted")

    async def _definitions(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if self.purges:
                await self._delete(entry)
                continue
            self.report(f"{entry} is kept")
        for resource in () if self.purges else DATA:
            if found := await self._all(resource):
                self.report(f"{len(found)} {resource} are kept: {_names(found)}; --purge deletes VirtualClusters")

    async def _all(self, resource: Resource, namespace: str = "") -> list[Object]:
        try:
            return [one async for page in self.client.pages(resource, namespace=namespace) for one in page.items]
        except errors.NotFound:
            return []

    async def _end(self, programs: Iterable[Entry], deadline: float) -> None:
        """Delete the programs, wait until their pods are gone, and delete the Leases that they leave."""
        selectors = [one for entry in programs if (one := await self._selector(entry))]
        for entry in programs:
            await self._delete(entry)
        if self.is_dry_run:
            return
        try:
            async with asyncio.timeout(deadline):
                for selector in selectors:
                    while (await self._pods(selector)).items:
                        await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            raise HansaError(f"pods still run in {self.installation.namespace} after {deadline:g} s") from None
        await self._leases()

    async def _selector(self, entry: Entry) -> str:
        try:
            found = await self.client.get(rendering.KINDS[entry.kind], entry.name, namespace=entry.namespace)
        except errors.NotFound:
            return ""
        labels = (found.spec.get("selector") or {}).get("matchLabels") or {}
        return ",".join(f"{name}={value}" for name, value in labels.items())

    async def _pods(self, selector: str) -> Page:
        return await self.client.list(resources.PODS, namespace=self.installation.namespace, labels=selector)

    async def _leases(self) -> None:
        """Delete the Leases of elections that have no holder."""
        page = await self.client.list(resources.LEASES, namespace=self.installation.namespace)
        for one in page.items:
            if leaders.is_ours(one) and not one.spec.get("holderIdentity"):
                with contextlib.suppress(errors.NotFound, errors.Conflict):
                    await self.client.delete(resources.LEASES, one.name, namespace=one.namespace, uid=one.uid)

    async def _namespace(self, entries: Iterable[Entry], deadline: float) -> bool:
        """Delete the namespace that install created, unless others have something there; whether it stays."""
        for entry in entries:
            if foreign := await self._foreign(entry.name):
                self.report(f"{entry} is kept, since others have objects there: {', '.join(foreign[:SHOWN])}")
                return True
            await self._delete(entry)
            if not self.is_dry_run:
                await self._ended(entry, deadline)
        return False

    async def _ended(self, namespace: Entry, deadline: float) -> None:
        try:
            async with asyncio.timeout(deadline):
                while (await self.client.get(resources.NAMESPACES, namespace.name)).uid == namespace.uid:
                    await asyncio.sleep(POLL_SECONDS)
        except errors.NotFound:
            return
        except TimeoutError:
            raise HansaError(f"{namespace} still exists after {deadline:g} s; see its conditions") from None

    async def _foreign(self, namespace: str) -> list[str]:
        found = [
            f"{resource.kind} {one.name}"
            for resource in (*CONTENT, *(one for one in DATA if one.namespaced))
            for one in await self._all(resource, namespace)
            if one.name not in AUTOMATIC and not one.metadata.owner_references and not self._is_ours(one)
        ]
        return sorted(found)

    def _is_ours(self, obj: Object) -> bool:
        return ownership.is_ours(self.installation, obj)


def _of(entries: Iterable[Entry], *kinds: str) -> list[Entry]:
    return [one for one in entries if one.kind in kinds]


def _names(found: list[Object]) -> str:
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return ", ".join(str(one.key) for one in found[:SHOWN]) + more
