"""Makes counters of the readings of one node, for scrapers that compute rates from two of them. Pure.

The metrics API has rates: they are summed up over time. The counter of the node never decreases while its pods change.
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
        used = sum(_used_since(before[key], one) for key, one in self.containers.items() if key in before)
        self.node = Usage(
            max((self.node.time, *(one.time for one in self.containers.values()))),
            self.node.core_seconds + used,
            sum(one.cores for one in self.containers.values()),
            sum(one.memory for one in self.containers.values()),
        )


def _usage(former: Usage | None, reading: Reading) -> Usage:
    if former is not None and reading.time <= former.time:
        return former
    if reading.core_seconds is not None:
        total = reading.core_seconds
        return Usage(reading.time, total, 0.0 if former is None else _rate(former, reading.time, total), reading.memory)
    cores = reading.cores or 0.0
    total = LEAST if former is None else former.core_seconds + cores * (reading.time - former.time)
    return Usage(reading.time, total, cores, reading.memory)


def _rate(former: Usage, time: float, total: float) -> float:
    return max(0.0, total - former.core_seconds) / (time - former.time)


def _used_since(former: Usage, now: Usage) -> float:
    return max(0.0, now.core_seconds - former.core_seconds)
