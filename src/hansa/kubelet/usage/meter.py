"""Makes counters of the readings of one node, for scrapers that compute rates from two of them. Pure.

The metrics API has rates: they are summed up over time. No counter decreases or jumps when pods or sources change.
"""

from collections.abc import Mapping
from typing import NamedTuple

from hansa.kubelet.usage.readings import Container, Reading

LEAST = 1e-3  # core-seconds at which a counter starts: metrics-server takes zero for a missing value


class Usage(NamedTuple):
    """The use of a container, or of a node."""

    time: float  # seconds since the epoch
    core_seconds: float
    cores: float
    memory: float  # bytes
    counter: float | None = None  # the core-seconds of the last reading, if it had them


class Meter:
    """The counters of a node; `node` is the sum of all containers since the first update."""

    def __init__(self) -> None:
        self.containers: Mapping[Container, Usage] = {}
        self.node = Usage(0.0, LEAST, 0.0, 0.0)

    def update(self, readings: Mapping[Container, Reading]) -> None:
        """Use newer readings; containers that have none any more are forgotten."""
        before, self.containers = (
            self.containers,
            {key: _usage(self.containers.get(key), reading) for key, reading in readings.items()},
        )
        # What a container used before it was first seen is not added: it may only have been out of sight.
        used = sum(one.core_seconds - before[key].core_seconds for key, one in self.containers.items() if key in before)
        self.node = Usage(
            max((self.node.time, *(one.time for one in self.containers.values()))),
            self.node.core_seconds + used,
            sum(one.cores for one in self.containers.values()),
            sum(one.memory for one in self.containers.values()),
        )


def _usage(former: Usage | None, reading: Reading) -> Usage:
    if former is None:
        total = LEAST if reading.core_seconds is None else reading.core_seconds
        return Usage(reading.time, total, reading.cores or 0.0, reading.memory, reading.core_seconds)
    if (passed := reading.time - former.time) <= 0:
        return former
    used = _used(former, reading, passed)
    total = former.core_seconds + used
    return Usage(reading.time, total, used / passed, reading.memory, reading.core_seconds)


def _used(former: Usage, reading: Reading, passed: float) -> float:
    """The core-seconds since the last reading. Its source may have changed, or its counter may be a new one."""
    if reading.core_seconds is None:
        return (reading.cores or 0.0) * passed
    if former.counter is None:
        return 0.0
    return reading.core_seconds - (former.counter if former.counter <= reading.core_seconds else 0.0)
