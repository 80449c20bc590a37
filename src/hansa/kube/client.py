"""The client of one API server: any resource, every verb, plain values in and out.

Used by everything that reads or writes objects. Caches and retries after a conflict are left to callers.
"""

import contextlib
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

import msgspec

from hansa.kube import decoding
from hansa.kube.decoding import Page
from hansa.kube.errors import Unreachable
from hansa.kube.http.limits import ListBudget, TooLarge
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.kube.server import Server

PAGE = 500  # objects; the page size of client-go


class PatchType(StrEnum):
    """The type of a patch; the value is its content type."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Propagation(StrEnum):
    """The deletion of dependents, the objects that a deleted object owns."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class Client(Server):
    """The verbs. Use it with `async with`, which closes its connections."""

    async def get(self, resource: Resource, name: str, *, namespace: str = "", subresource: str = "") -> Object:
        """Read one object, or a subresource of it such as `scale`."""
        path = resource.path(name, namespace=namespace, subresource=subresource)
        return await self._object("GET", path, doing=f"read {_named(resource, namespace, name)}")

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        limit: int = PAGE,
        next: str = "",  # noqa: A002 - the field of Page that it continues
        version: str = "",
        version_match: str = "",
    ) -> Page:
        """Read one page of objects; `Page.next` continues it. `labels` and `fields` are selectors."""
        response = await self.request(
            "GET",
            resource.collection(namespace),
            doing=f"list {_named(resource, namespace)}",
            query={
                "labelSelector": labels,
                "fieldSelector": fields,
                "limit": str(limit or ""),
                "continue": next,
                "resourceVersion": version,
                "resourceVersionMatch": version_match,
            },
        )
        with _readable(f"list {_named(resource, namespace)}"):
            return decoding.parse_page(response.body, keep_managed_fields=self.keep_managed_fields)

    async def pages(
        self, resource: Resource, *, namespace: str = "", labels: str = "", fields: str = "", limit: int = PAGE
    ) -> AsyncGenerator[Page, None]:
        """Read all objects at one resourceVersion, page by page. A page that is too large is read in smaller ones."""
        doing = f"list {_named(resource, namespace)}"
        budget, token, tokens = ListBudget(self.limits, doing), "", set[int]()
        while True:
            budget.next_page()
            try:
                page = await self.list(
                    resource, namespace=namespace, labels=labels, fields=fields, limit=limit, next=token
                )
            except TooLarge:
                if limit == 1:
                    raise
                limit = (limit or 2 * PAGE) // 2
                continue
            budget.spend(len(page.items), page.size)
            yield page
            if not (token := page.next):
                return
            if hash(token) in tokens:
                raise Unreachable(f"cannot {doing}: the server repeats a continue token")
            tokens.add(hash(token))

    async def create(
        self, resource: Resource, obj: Object, *, namespace: str = "", field_manager: str = "", dry_run: bool = False
    ) -> Object:
        """Create an object; in the namespace that it names, or in the given one."""
        namespace = namespace or obj.namespace
        return await self._object(
            "POST",
            resource.collection(namespace),
            doing=f"create {_named(resource, namespace, obj.name or obj.metadata.generate_name)}",
            query=_writing(field_manager, dry_run),
            body=obj.to_json(),
        )

    async def update(
        self, resource: Resource, obj: Object, *, subresource: str = "", field_manager: str = "", dry_run: bool = False
    ) -> Object:
        """Replace an object, or its `status`, if its resourceVersion is still that of the server."""
        return await self._object(
            "PUT",
            resource.path(obj.name, namespace=obj.namespace, subresource=subresource),
            doing=f"update {_named(resource, obj.namespace, obj.name, subresource)}",
            query=_writing(field_manager, dry_run),
            body=obj.to_json(),
        )

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Mapping[str, Any] | Sequence[Mapping[str, Any]] | bytes,
        *,
        namespace: str = "",
        patch_type: PatchType = PatchType.MERGE,
        subresource: str = "",
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Object:
        """Change parts of an object. A `resourceVersion` in a merge patch makes it conditional."""
        return await self._object(
            "PATCH",
            resource.path(name, namespace=namespace, subresource=subresource),
            doing=f"patch {_named(resource, namespace, name, subresource)}",
            query=_writing(field_manager, dry_run) | ({"force": "true"} if force else {}),
            body=patch if isinstance(patch, bytes) else msgspec.json.encode(patch),
            content=patch_type,
        )

    async def apply(
        self,
        resource: Resource,
        obj: Object,
        *,
        field_manager: str,
        subresource: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> Object:
        """Server-side apply: set the object's fields, and own them. `force` takes them from other managers."""
        return await self.patch(
            resource,
            obj.name,
            obj.to_json(),
            namespace=obj.namespace,
            patch_type=PatchType.APPLY,
            subresource=subresource,
            field_manager=field_manager,
            force=force,
            dry_run=dry_run,
        )

    async def call(
        self,
        resource: Resource,
        name: str,
        subresource: str,
        *,
        body: Object,
        namespace: str = "",
        dry_run: bool = False,
    ) -> Object:
        """Post to a subresource that is an action: binding, eviction, token."""
        return await self._object(
            "POST",
            resource.path(name, namespace=namespace, subresource=subresource),
            doing=f"post to {_named(resource, namespace, name, subresource)}",
            query=_writing("", dry_run),
            body=body.to_json(),
        )

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        version: str = "",
        grace: int | None = None,
        propagation: Propagation | None = None,
        dry_run: bool = False,
    ) -> Object | None:
        """Delete an object, only if it has that uid and version; `grace` is in seconds.

        Returns the object if the server does: one with finalizers still exists, with a deletionTimestamp.
        """
        answer = await self._object(
            "DELETE",
            resource.path(name, namespace=namespace),
            doing=f"delete {_named(resource, namespace, name)}",
            query=_trying(dry_run),
            body=_delete_options(uid=uid, version=version, grace=grace, propagation=propagation),
        )
        return None if answer.kind == "Status" else answer

    async def delete_collection(
        self,
        resource: Resource,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        grace: int | None = None,
        propagation: Propagation | None = None,
        dry_run: bool = False,
    ) -> None:
        """Delete all objects that match the selectors."""
        await self.request(
            "DELETE",
            resource.collection(namespace),
            doing=f"delete all {_named(resource, namespace)}",
            query={"labelSelector": labels, "fieldSelector": fields} | _trying(dry_run),
            body=_delete_options(grace=grace, propagation=propagation),
        )

    async def _object(
        self,
        method: str,
        path: str,
        *,
        doing: str,
        query: Mapping[str, str] | None = None,
        body: bytes = b"",
        content: str = "application/json",
    ) -> Object:
        response = await self.request(method, path, doing=doing, query=query, body=body, content=content)
        with _readable(doing):
            return decoding.parse_object(response.body, keep_managed_fields=self.keep_managed_fields)


@contextlib.contextmanager
def _readable(doing: str) -> Iterator[None]:
    """A login page of a proxy has status 200, too."""
    try:
        yield
    except msgspec.DecodeError as error:
        raise Unreachable(f"cannot {doing}: the answer is not that of an API server ({error})") from None


def _named(resource: Resource, namespace: str, name: str = "", subresource: str = "") -> str:
    where = f"{namespace}/{name}" if namespace and name else name or (f"in {namespace}" if namespace else "")
    return " ".join(part for part in (f"{resource}/{subresource}" if subresource else str(resource), where) if part)


def _writing(field_manager: str, dry_run: bool) -> dict[str, str]:
    # By default a server searches for unknown fields, to warn of them. Warnings are not read here.
    return {"fieldManager": field_manager, "fieldValidation": "Ignore"} | _trying(dry_run)


def _trying(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All" if dry_run else ""}


def _delete_options(
    *, uid: str = "", version: str = "", grace: int | None = None, propagation: Propagation | None = None
) -> bytes:
    preconditions = {name: value for name, value in (("uid", uid), ("resourceVersion", version)) if value}
    options: dict[str, Any] = {"preconditions": preconditions} if preconditions else {}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    if propagation is not None:
        options["propagationPolicy"] = propagation
    return msgspec.json.encode({"apiVersion": "v1", "kind": "DeleteOptions"} | options) if options else b""
