"""Time as a value that is passed in, so that everything can run on simulated time.

The waiting itself is asyncio's: a simulated clock belongs to an event loop whose time is simulated, too.
"""

import asyncio
import datetime
import time
from typing import Protocol


class Clock(Protocol):
    """The time, and waiting for it."""

    def now(self) -> float:
        """Seconds that only go forward; only differences mean something."""

    def wall(self) -> datetime.datetime:
        """The date and time in UTC, as written into objects. It may jump."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The machine's own clock. `now` agrees with the event loop's time, and can be read outside of a loop."""

    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> datetime.datetime:
        return datetime.datetime.now(datetime.UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
