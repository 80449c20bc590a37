"""Records Kubernetes Events: callers never wait, Events are written in the background.

Only the newest count of a series is written. Events that exceed the buffer or the retries are dropped and counted.
"""

import asyncio
import datetime
import enum
import logging
import random as randomness
from typing import Any

from hansa.control import event_correlation
from hansa.control.event_correlation import EventType, InvolvedObject
from hansa.kube import client, errors, objects, resources
from hansa.runtime import backoff, clock, metrics, timestamps

__all__ = ["EventType", "InvolvedObject", "Recorder"]

log = logging.getLogger(__name__)
RETRIES = backoff.Backoff(first=0.5, factor=2.0, most=10.0, jitter=0.2)
TRIES = 8  # about half a minute; after a longer outage, status writes are more important than old Events
LONGEST_MESSAGE = 1024  # characters; the API server refuses longer ones


class Drop(enum.StrEnum):
    """Why an Event is not written, as the label of a metric."""

    SPAM = "spam"
    FULL = "full"
    REFUSED = "refused"
    UNREACHABLE = "unreachable"


class Recorder:
    """Writes the Events of one component to one cluster; at most `most` series are buffered."""

    def __init__(
        self,
        component: str,
        client: client.Client,
        *,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
        instance: str = "",
        most: int = 1000,
    ) -> None:
        self._component, self._instance = component, instance or component
        self._client, self._clock, self._random, self._most = client, clock, random, most
        self._correlator = event_correlation.Correlator()
        self._waiting: dict[event_correlation.Series, None] = {}
        self._changed = asyncio.Event()
        self._is_draining = False
        self._dropped = metrics.counter(
            "hansa_events_dropped_total", "Events not written, by reason.", labels=["reason"]
        )
        self._written = metrics.counter("hansa_events_written_total", "Events written.")

    def record(
        self, subject: InvolvedObject, reason: str, message: str, *, event_type: EventType = EventType.NORMAL
    ) -> None:
        """Record an Event on an object. It never waits and never fails."""
        occurrence = event_correlation.Occurrence(subject, event_type, reason, message[:LONGEST_MESSAGE])
        series = self._correlator.count(occurrence, self._clock.now())
        if series is None:
            self._dropped.labels(Drop.SPAM).inc()
        elif series not in self._waiting and len(self._waiting) >= self._most:
            self._dropped.labels(Drop.FULL).inc()
        else:
            self._waiting[series] = None
            self._changed.set()

    async def run(self) -> None:
        """Write recorded Events until drained."""
        while self._waiting or not self._is_draining:
            self._changed.clear()
            if self._waiting:
                series = next(iter(self._waiting))
                del self._waiting[series]
                await self._write_patiently(series)
            else:
                await self._changed.wait()

    def drain(self) -> None:
        """Write the buffered Events, then let `run` return."""
        self._is_draining = True
        self._changed.set()

    async def _write_patiently(self, series: event_correlation.Series) -> None:
        for failures in range(1, TRIES + 1):
            try:
                await self._write(series)
            except (errors.Unreachable, errors.Throttled):
                await self._clock.sleep(RETRIES.delay(failures, self._random))
            except errors.ApiError as error:
                # Such as a namespace that is gone, or a missing permission: a retry would fail again.
                log.info("event not written", extra={"error": str(error)})
                self._dropped.labels(Drop.REFUSED).inc()
                return
            else:
                self._written.inc()
                return
        self._dropped.labels(Drop.UNREACHABLE).inc()

    async def _write(self, series: event_correlation.Series) -> None:
        namespace = series.occurrence.subject.namespace or "default"
        if series.name:
            patch = {
                "count": series.count,
                "lastTimestamp": self._time(series.last),
                "message": series.occurrence.message,
            }
            try:
                await self._client.patch(resources.EVENTS, series.name, patch, namespace=namespace)
            except errors.NotFound:
                series.name = ""  # the server deletes Events after an hour: create it again
            else:
                return
        created = await self._client.create(resources.EVENTS, self._event(series, namespace))
        series.name = created.name

    def _event(self, series: event_correlation.Series, namespace: str) -> objects.Object:
        subject, occurrence = series.occurrence.subject, series.occurrence
        event: dict[str, Any] = {
            "apiVersion": "v1",
            "kind": "Event",
            # The object's name and a random suffix, within the 253 characters of a name.
            "metadata": {"namespace": namespace, "name": f"{subject.name[:235]}.{self._random.getrandbits(64):016x}"},
            "involvedObject": {
                "apiVersion": subject.api_version,
                "kind": subject.kind,
                "namespace": subject.namespace,
                "name": subject.name,
                "uid": subject.uid,
            },
            "type": occurrence.event_type,
            "reason": occurrence.reason,
            "message": occurrence.message,
            "count": series.count,
            "firstTimestamp": self._time(series.first),
            "lastTimestamp": self._time(series.last),
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
        }
        return objects.Object.of(event)

    def _time(self, moment: float) -> str:
        wall = self._clock.wall() - datetime.timedelta(seconds=self._clock.now() - moment)
        return timestamps.time(wall)
