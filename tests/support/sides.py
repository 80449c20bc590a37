"""An upper object and its lower one on one real API server, in two namespaces, moved by hand as the engine would."""

from collections.abc import Mapping
from typing import Any, Self

import golden_files
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
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
        upper = await existing(self.client, self.resource, creatable(source, self.above))  # the root CA is there
        await self._make(self.rule.on_create(self.wanted(upper)))
        return self

    async def _make(self, wanted: Object) -> None:
        """What the upper object has taken already, on the one server that both are on, is left to the server."""
        try:
            await self.client.create(self.resource, wanted)
        except errors.Invalid as error:
            other = self.rule.fallback(wanted.spec, [cause.field for cause in error.causes], ())
            if other is None:
                raise
            await self.client.create(self.resource, wanted.with_fields(spec=other))

    def wanted(self, upper: Object) -> Object:
        key = Key(self.link.upper, self.resource, *upper.key)
        return self.mode.desired(upper, key, self.link).with_metadata(namespace=self.below)

    async def upper(self) -> Object:
        return await self.client.get(self.resource, self.name, namespace=self.above)

    async def lower(self) -> Object:
        name = self.wanted(await self.upper()).name
        return await self.client.get(self.resource, name, namespace=self.below)

    async def change(self, patch: Mapping[str, Any], subresource: str = "") -> None:
        """What a user does to the upper object."""
        await self._write(await self.upper(), PatchPart(patch, subresource))

    async def down(self) -> list[PatchPart]:
        """Let the lower object follow; what was written."""
        upper, lower = await self.upper(), await self.lower()
        return [await self._write(lower, part) for part in self.rule.down_patches(lower, self.wanted(upper))]

    async def up(self, told: Mapping[str, Any] | None = None) -> list[PatchPart]:
        """Let the lower object tell, or let it say this; what was written."""
        upper, lower = await self.upper(), await self.lower()
        lower = lower if told is None else lower.with_fields(status=told)
        return [await self._write(upper, part) for part in self.rule.up_patches(upper, lower, self.link)]

    async def _write(self, obj: Object, part: PatchPart) -> PatchPart:
        await self.client.patch(
            self.resource, obj.name, part.patch, namespace=obj.namespace, subresource=part.subresource
        )
        return part


async def prepare(client: Client, *namespaces: str) -> None:
    """What the golden files name and the server looks for; it adds default accounts only a moment later."""
    for namespace in namespaces:
        for name in ("default", "web", "vault", "robot"):
            account = Object.of({"metadata": {"name": name, "namespace": namespace}})
            await existing(client, resources.SERVICE_ACCOUNTS, account)
    await existing(client, resources.PRIORITY_CLASSES, Object.of({"metadata": {"name": "high"}, "value": 1000}))


async def existing(client: Client, resource: Resource, obj: Object) -> Object:
    try:
        return await client.create(resource, obj)
    except errors.AlreadyExists:
        return await client.get(resource, obj.name, namespace=obj.namespace)


def creatable(obj: Object, namespace: str) -> Object:
    """What a user would write to get this object: without what the server fills in."""
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
