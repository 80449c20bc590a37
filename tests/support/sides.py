"""An upper object and its lower one on one real API server, in two namespaces.

Used by tests of translations: the test calls the writes that the engine would make, one at a time.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import golden_files
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.model.lookups import Lookups
from hansa.model.mode import Mode, PatchPart
from hansa.model.pair import Key, Link


class Sides:
    """An upper object and its lower one on a real API server."""

    def __init__(
        self, client: Client, mode: Mode, resource: Resource, *, above: str, below: str, link: Link = golden_files.LINK
    ) -> None:
        self.client, self.mode, self.resource, self.above, self.below = client, mode, resource, above, below
        self.link = link
        self.rule, self.name = mode.rules[resource], ""

    async def create(self, source: Object) -> Self:
        """Create the upper object as a user would, and the lower one as the engine would."""
        await prepare(self.client, self.above)
        if self.resource != resources.SERVICE_ACCOUNTS:
            await prepare(self.client, self.below)
        self.name = source.name
        self.link = dataclasses.replace(self.link, lookups=self._moved(self.link.lookups, source.namespace))
        upper = await existing(self.client, self.resource, creatable(source, self.above))  # the root CA is there
        wanted = self.wanted(upper)
        await self._make(wanted if self.rule.on_create is None else self.rule.on_create(wanted))
        return self

    def _moved(self, lookups: Lookups, namespace: str) -> Lookups:
        """The objects of the original namespace are those of the namespace that it has here."""

        def here(at: str) -> str:
            return self.above if at == namespace else at

        moved = {(one, NamespacedName(here(at), name)): found for (one, (at, name)), found in lookups.objects.items()}
        listed = {
            (one, here(at)): tuple(NamespacedName(here(at), name) for _, name in names)
            for (one, at), names in lookups.listed.items()
        }
        return Lookups({**lookups.objects, **moved}, listed)  # objects that were found name others as they did

    async def _make(self, wanted: Object) -> None:
        """Create the lower object. Values that the upper object has taken on the shared server fall back."""
        try:
            await self.client.create(self.resource, wanted)
        except errors.Invalid as error:
            fallback, fields = self.rule.fallback, [cause.field for cause in error.causes]
            other = None if fallback is None else fallback(wanted.spec, fields, ())
            if other is None:
                raise
            await self.client.create(self.resource, wanted.with_fields(spec=other))

    def wanted(self, upper: Object) -> Object:
        """The desired lower object."""
        key = Key(self.link.upper, self.resource, *upper.key)
        return self.mode.desired(upper, key, self.link).with_metadata(namespace=self.below)

    async def upper(self) -> Object:
        """The upper object on the server."""
        return await self.client.get(self.resource, self.name, namespace=self.above)

    async def lower(self) -> Object:
        """The lower object on the server."""
        name = self.wanted(await self.upper()).name
        return await self.client.get(self.resource, name, namespace=self.below)

    async def change(self, patch: Mapping[str, Any], subresource: str = "") -> None:
        """Patch the upper object as a user would."""
        await self._write(await self.upper(), PatchPart(patch, subresource))

    async def down(self) -> list[PatchPart]:
        """Sync the lower object; the patches that were written."""
        upper, lower = await self.upper(), await self.lower()
        return [await self._write(lower, part) for part in self.rule.down_patches(lower, self.wanted(upper))]

    async def up(self, status: Mapping[str, Any] | None = None) -> list[PatchPart]:
        """Sync the upper object, with this status of the lower one if given; the patches that were written."""
        upper, lower = await self.upper(), await self.lower()
        lower = lower if status is None else lower.with_fields(status=status)
        assert self.rule.up_patches is not None, f"nothing of {self.resource} is synced up"
        return [await self._write(upper, part) for part in self.rule.up_patches(upper, lower, self.link)]

    async def _write(self, obj: Object, part: PatchPart) -> PatchPart:
        await self.client.patch(
            self.resource, obj.name, part.patch, namespace=obj.namespace, subresource=part.subresource
        )
        return part


async def prepare(client: Client, *namespaces: str) -> None:
    """Create the accounts and classes that golden files refer to; the server makes default accounts too late."""
    for namespace in namespaces:
        for name in ("default", "web", "vault", "robot"):
            account = Object.of({"metadata": {"name": name, "namespace": namespace}})
            await existing(client, resources.SERVICE_ACCOUNTS, account)
    for name in ("high", "important"):
        await existing(client, resources.PRIORITY_CLASSES, Object.of({"metadata": {"name": name}, "value": 1000}))


async def existing(client: Client, resource: Resource, obj: Object) -> Object:
    """Create an object unless it exists; the object on the server."""
    try:
        return await client.create(resource, obj)
    except errors.AlreadyExists:
        return await client.get(resource, obj.name, namespace=obj.namespace)


def creatable(obj: Object, namespace: str) -> Object:
    """The object without the fields that the server fills in, as a user would create it."""
    notes = {name: value for name, value in obj.annotations.items() if not name.endswith(".uid")}
    plain = obj.with_metadata(
        annotations=notes, uid="", resource_version="", owner_references=(), finalizers=(), namespace=namespace
    )
    allotted = {"clusterIPs", "ephemeralContainers", "priority", "healthCheckNodePort", "ipFamilies", "ipFamilyPolicy"}
    spec = {name: value for name, value in plain.spec.items() if name not in allotted}
    if spec.get("clusterIP", "None") != "None":
        del spec["clusterIP"]
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        spec["ports"] = [{n: v for n, v in port.items() if n != "nodePort"} for port in spec["ports"]]
    return plain.with_fields(spec=spec or None, status=None)
