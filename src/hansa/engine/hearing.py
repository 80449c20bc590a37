"""Lower Events about copies, as they happen: one watch for each lower cluster, however many upper ones it serves.

Lower Events are short-lived, so nothing is cached and nothing is made good later. Telling them above is the echo's.
"""

import contextlib
import datetime
import random as randomness
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from hansa.engine.side import Side
from hansa.kube import resources, watching
from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import stamp
from hansa.model.mode import Mode
from hansa.runtime import clock

OLD = 60.0  # seconds before we last listened, after which a full list brings no news; clocks differ by less


class Heard(NamedTuple):
    """An Event of a lower cluster, and the upper object that its own object is a copy of."""

    event: Object
    lower: str
    resource: Resource
    origin: stamp.Origin


class Involved(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """What an Event is about."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    field_path: str = ""


class Hearing:
    """The Events of one lower cluster about copies of those kinds from which anything comes back."""

    def __init__(
        self,
        lower: Side,
        mode: Mode,
        heard: Callable[[Heard], None],
        *,
        clock: clock.Clock,
        random: randomness.Random,
    ) -> None:
        self._lower, self._heard, self._clock, self._random = lower, heard, clock, random
        told = (rule.resource for rule in mode.rules.values() if rule.tells and rule.resource in lower.stores)
        self._resources = {resource.kind: resource for resource in told}

    async def run(self) -> None:
        """Listen until cancelled."""
        last = self._clock.wall()
        await self._lower.listed(self._resources.values())  # whose an Event is can be told by its copy alone
        since: datetime.datetime | None = None  # while a full list comes: what is older was told before
        client = self._lower.cluster.client
        changes = watching.watch(client, resources.EVENTS, clock=self._clock, random=self._random)
        async with contextlib.aclosing(changes):
            async for change in changes:
                match change:
                    case watching.Restarted():
                        since = last - datetime.timedelta(seconds=OLD)
                    case watching.Synced():
                        since = None
                    case watching.Added(event) | watching.Modified(event):
                        if since is None or _last(event) > since:
                            self._take(event)
                if since is None:
                    last = self._clock.wall()

    def _take(self, event: Object) -> None:
        involved = event.decode("involvedObject", Involved)
        if (resource := self._resources.get(involved.kind)) is None:
            return
        copy = self._lower.stores[resource].get(Place(involved.namespace, involved.name))
        if copy is not None and copy.uid == involved.uid and (origin := stamp.of(copy)) is not None:
            self._heard(Heard(event, self._lower.cluster.name, resource, origin))


class _Series(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    last_observed_time: datetime.datetime | None = None


def _last(event: Object) -> datetime.datetime:
    """When it was last so."""
    times = [event.metadata.creation_timestamp, *(_time(event, field) for field in ("lastTimestamp", "eventTime"))]
    if _is_there(event, "series"):
        times.append(event.decode("series", _Series).last_observed_time)
    return max(time for time in times if time is not None)


def _time(event: Object, field: str) -> datetime.datetime | None:
    return event.decode(field, datetime.datetime) if _is_there(event, field) else None


def _is_there(event: Object, field: str) -> bool:
    return event.raw(field) not in (b"", b"null")
