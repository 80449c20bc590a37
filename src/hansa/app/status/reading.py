"""Bounded reads of one cluster: each has a deadline and a limit of objects, and a kind that is not served has none."""

import asyncio
import datetime
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from hansa.app.status.section import MOST, Section
from hansa.kube import errors
from hansa.kube.client import PAGE, Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.runtime.errors import HansaError


@dataclass(frozen=True, slots=True)
class Listed:
    """Objects, and whether there are more than were read."""

    items: list[Object]
    has_more: bool = False


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads one cluster; `now` is the time that ages count from, `deadline` the seconds for a topic."""

    client: Client
    now: datetime.datetime
    deadline: float

    async def list(self, resource: Resource, *, namespace: str = "", labels: str = "", fields: str = "") -> Listed:
        """The objects that match, at most MOST; none if the kind is not installed."""
        found: list[Object] = []
        token = ""
        while len(found) < MOST:
            try:
                page = await self.client.list(
                    resource, namespace=namespace, labels=labels, fields=fields, limit=PAGE, next=token
                )
            except errors.NotFound:
                return Listed(found)
            except errors.Gone:  # it changed faster than it was read
                return Listed(found, has_more=True)
            found += page.items
            if not (token := page.next):
                return Listed(found)
        return Listed(found[:MOST], has_more=True)

    async def find(self, resource: Resource, name: str, *, namespace: str = "") -> Object | None:
        """One object, or None."""
        try:
            return await self.client.get(resource, name, namespace=namespace)
        except errors.NotFound:
            return None

    async def section(self, title: str, read: Callable[["Reader"], Awaitable[Section]]) -> Section:
        """Read one topic; a failure is a part of the result, so that it does not hide others."""
        try:
            async with asyncio.timeout(self.deadline):
                return await read(self)
        except TimeoutError:
            return Section(title, unread=f"not read within {self.deadline:g} s")
        except (HansaError, ValueError, TypeError, KeyError, AttributeError) as error:
            # Fields of objects have any type here: what a user or another program wrote must not hide other topics.
            kind = "" if isinstance(error, HansaError) else f"{type(error).__name__}: "
            return Section(title, unread=f"{kind}{error}")
