"""The clock that components are given, so that tests can run them on simulated time.

Timers are asyncio's: a simulated clock belongs to an event loop with simulated time.
"""

import asyncio
import datetime
import time
from typing import Protocol


class Clock(Protocol):
    """The current time, and sleep."""

    def now(self) -> float:
        """Monotonic seconds; only differences have a meaning."""

    def wall(self) -> datetime.datetime:
        """The date and time in UTC, as written into objects. It may jump."""

    async def sleep(self, seconds: float) -> None:
        """Sleep for so many seconds."""


class SystemClock:
    """The clock of the machine. `now` equals the event loop's time, and can be read outside of a loop."""

    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> datetime.datetime:
        return datetime.datetime.now(datetime.UTC)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
