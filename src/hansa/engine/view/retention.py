"""Copies that are no longer placed and are retained for a while: since when, in memory.

After a restart the time begins again: such copies stay a little longer.
"""

from collections.abc import Collection, Mapping

from hansa.model.pair import Key, Side
from hansa.runtime import clock


class Retention:
    """When copies of one upper cluster were first seen unplaced."""

    def __init__(self, clock: clock.Clock) -> None:
        self._clock = clock
        self._since: dict[Key, dict[str, float]] = {}

    def left(
        self, key: Key, lowers: Mapping[str, Side], placed: Collection[str], *, seconds: float
    ) -> Mapping[str, float]:
        """The seconds for which copies are still retained, by cluster, if that is `seconds` in all."""
        now, since = self._clock.now(), self._since.get(key, {})
        ends = {cluster: since.get(cluster, now) + seconds for cluster in _unplaced(lowers, placed)}
        return {cluster: end - now for cluster, end in ends.items() if end > now}

    def update(self, key: Key, lowers: Mapping[str, Side], placed: Collection[str]) -> None:
        """Record which copies are not placed now."""
        now, before = self._clock.now(), self._since.pop(key, {})
        if since := {cluster: before.get(cluster, now) for cluster in _unplaced(lowers, placed)}:
            self._since[key] = since


def _unplaced(lowers: Mapping[str, Side], placed: Collection[str]) -> list[str]:
    return [cluster for cluster, lower in lowers.items() if lower is not None and cluster not in placed]
