"""Warning events of Hansa in the last hour. They explain problems, and are none themselves: they may be solved."""

from typing import Final

from hansa.app.status.reading import Reader
from hansa.app.status.section import Row, Section, age, seconds_since
from hansa.kube import resources
from hansa.kube.objects import Object

TITLE: Final = "warnings"
COLUMNS: Final = ("LAST", "OBJECT", "REASON", "COUNT", "MESSAGE")
RECENT_SECONDS: Final = 3600.0
MOST_ROWS: Final = 20
LONGEST_MESSAGE: Final = 200  # characters in the table
PREFIX: Final = "hansa-"
OTHERS: Final = frozenset({"vc-manager", "vc-syncer", "vc-scheduler"})  # names of components without the prefix


async def read(reader: Reader) -> Section:
    """The newest Warning events of our components."""
    found = await reader.list(resources.EVENTS, fields="type=Warning")
    ours = [(seconds, one) for one in found.items if is_ours(one) and (seconds := last(one, reader)) < RECENT_SECONDS]
    newest = sorted(ours, key=lambda pair: pair[0])[:MOST_ROWS]
    return Section(TITLE, COLUMNS, tuple(Row(_cells(one, seconds)) for seconds, one in newest))


def is_ours(event: Object) -> bool:
    """Whether a component of ours recorded it."""
    source = event.get("source") or {}
    component = str(source.get("component") or event.get("reportingComponent") or "")
    return component.startswith(PREFIX) or component in OTHERS


def last(event: Object, reader: Reader) -> float:
    """Seconds since it occurred last."""
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    found = [seconds for one in times if one and (seconds := seconds_since(one, reader.now)) is not None]
    return min(found, default=seconds_since(event.metadata.creation_timestamp, reader.now) or 0.0)


def _cells(event: Object, seconds: float) -> tuple[str, ...]:
    subject = event.get("involvedObject") or {}
    place = "/".join(filter(None, (subject.get("namespace"), subject.get("name"))))
    message = " ".join(str(event.get("message") or "").split())[:LONGEST_MESSAGE]
    count = str((event.get("series") or {}).get("count") or event.get("count") or 1)
    return age(seconds), f"{subject.get('kind', '')} {place}", str(event.get("reason") or ""), count, message
