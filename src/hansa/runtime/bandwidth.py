"""A limit of bytes per second, shared by connections that wait for it."""

from hansa.runtime import clock

BURST = 1.0  # seconds of its bandwidth that may be used at once


class Bandwidth:
    """Bytes per second, in both directions together; 0 is unlimited."""

    def __init__(self, rate: float, *, clock: clock.Clock) -> None:
        self._rate, self._clock = rate, clock
        self._free_at = 0.0

    async def take(self, size: int) -> None:
        """Wait until so many bytes may be sent."""
        if not self._rate:
            return
        now = self._clock.now()
        self._free_at = max(self._free_at, now - BURST) + size / self._rate
        if self._free_at > now:
            await self._clock.sleep(self._free_at - now)
