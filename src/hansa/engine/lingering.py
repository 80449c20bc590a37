"""For how long copies that nobody needs any more may stay: since when they are not needed is remembered here.

After a restart it begins anew: what is forgotten stays a little longer.
"""

from collections.abc import Container, Mapping

from hansa.model.pair import Key, Side
from hansa.runtime import clock


class Lingering:
    """The copies of one view that are not needed now."""

    def __init__(self, clock: clock.Clock) -> None:
        self._clock = clock
        self._since: dict[Key, dict[str, float]] = {}

    def left(self, key: Key, lowers: Mapping[str, Side], wanted: Container[str], seconds: float) -> Mapping[str, float]:
        """The seconds that copies of this object may stay yet, by cluster, if they may stay for `seconds`."""
        now, before = self._clock.now(), self._since.pop(key, {})
        unwanted = [cluster for cluster, lower in lowers.items() if lower is not None and cluster not in wanted]
        if not unwanted:
            return {}
        since = self._since[key] = {cluster: before.get(cluster, now) for cluster in unwanted}
        return {cluster: start + seconds - now for cluster, start in since.items() if start + seconds > now}
