"""The writer of the federation's controllers: objects that they own in one cluster, and fields of users' objects.

What is wanted, and what differs, is computed by pure functions. Copies in targets are written by the engine.
"""

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from hansa.control.store import Store
from hansa.kube import errors
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model.mode import PatchPart
from hansa.runtime.errors import HansaError

Patches = Callable[[Object, Object], Iterable[PatchPart]]
NO_STORES: Final[Mapping[Resource, Store]] = {}


def fields_only(client: Client, *, manager: str, stores: Mapping[Resource, Store] = NO_STORES) -> "OwnedObjects":
    """A writer of fields of users' objects, which owns none."""
    return OwnedObjects(client, manager=manager, is_ours=lambda _: False, stores=stores)


class NotOwned(HansaError):
    """An object without our stamp has the name of one of ours. It is never written or deleted."""


class OwnedObjects:
    """Writes to one cluster. `is_ours` reads the stamp of an object; answers are put into `stores`."""

    def __init__(
        self,
        client: Client,
        *,
        manager: str,
        is_ours: Callable[[Object], bool],
        stores: Mapping[Resource, Store] = NO_STORES,
    ) -> None:
        self._client, self._manager, self._is_ours, self._stores = client, manager, is_ours, stores

    async def ensure(self, resource: Resource, have: Object | None, wanted: Object, patches: Patches) -> Object:
        """Create an object of ours, or patch what differs; as it is then. Raises NotOwned."""
        if have is None:
            return await self.create(resource, wanted)
        self._check(resource, have)
        for part in patches(have, wanted):
            have = await self.patch(resource, have, part.patch) or have
        return have

    async def create(self, resource: Resource, wanted: Object) -> Object:
        """Create an object of ours."""
        made = await self._client.create(resource, wanted, field_manager=self._manager)
        return self._observed(resource, made)

    async def patch(
        self, resource: Resource, obj: Object, patch: Mapping[str, Any], *, subresource: str = ""
    ) -> Object | None:
        """Patch fields of ours in an object, which may be a user's; None if that is gone. Nothing is an empty patch."""
        if not patch:
            return obj
        with_uid = {**patch, "metadata": {**patch.get("metadata", {}), "uid": obj.uid}}
        try:
            made = await self._client.patch(
                resource,
                obj.name,
                with_uid,
                namespace=obj.namespace,
                subresource=subresource,
                field_manager=self._manager,
            )
        except errors.NotFound:
            self._observe_gone(resource, obj)
            return None
        return self._observed(resource, made)

    async def delete(self, resource: Resource, obj: Object) -> None:
        """Delete an object of ours. Raises NotOwned."""
        self._check(resource, obj)
        left = None
        with contextlib.suppress(errors.NotFound, errors.Conflict):  # a conflict: another object has the name now
            left = await self._client.delete(resource, obj.name, namespace=obj.namespace, uid=obj.uid)
        if left is not None and left.metadata.finalizers:
            self._observed(resource, left)
        else:
            self._observe_gone(resource, obj)

    async def find(self, resource: Resource, name: str, *, namespace: str = "") -> Object | None:
        """Read an object that is in no store."""
        with contextlib.suppress(errors.NotFound):
            return await self._client.get(resource, name, namespace=namespace)
        return None

    async def add_finalizer(self, resource: Resource, obj: Object, finalizer: str) -> Object:
        """Add a finalizer to an object of a user, which was read in this version; the object then."""
        if finalizer in obj.metadata.finalizers:
            return obj
        return await self._set_finalizers(resource, obj, [*obj.metadata.finalizers, finalizer]) or obj

    async def remove_finalizer(self, resource: Resource, obj: Object, finalizer: str) -> None:
        """Remove a finalizer of ours; a conflict is the caller's to retry."""
        if finalizer in obj.metadata.finalizers:
            await self._set_finalizers(resource, obj, [one for one in obj.metadata.finalizers if one != finalizer])

    async def _set_finalizers(self, resource: Resource, obj: Object, finalizers: list[str]) -> Object | None:
        return await self.patch(resource, obj, {"metadata": {"finalizers": finalizers, "resourceVersion": obj.version}})

    def _check(self, resource: Resource, obj: Object) -> None:
        if not self._is_ours(obj):
            raise NotOwned(f"{resource.kind} {obj.key} exists and was not made by Hansa: delete it, or rename one")

    def _observed(self, resource: Resource, made: Object) -> Object:
        if (store := self._stores.get(resource)) is not None:
            store.observe(made)
        return made

    def _observe_gone(self, resource: Resource, obj: Object) -> None:
        if (store := self._stores.get(resource)) is not None:
            store.observe_gone(obj.key, obj.uid)
