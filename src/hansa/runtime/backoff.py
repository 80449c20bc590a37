"""Exponential back-off: the delay after the n-th failure in a row, capped, and jittered so that retries spread out."""

import dataclasses
import math
import random as randomness

from hansa.runtime import errors


@dataclasses.dataclass(frozen=True, slots=True)
class Backoff:
    """A growing delay in seconds: `first`, times `factor` with each failure, at most `most`, ± the share `jitter`."""

    first: float
    factor: float = 2.0
    most: float = 60.0
    jitter: float = 0.1

    def __post_init__(self) -> None:
        if not (0 < self.first <= self.most and self.factor >= 1 and 0 <= self.jitter < 1):
            raise errors.HansaError(f"{self} is not valid: it needs 0 < first <= most, factor >= 1, 0 <= jitter < 1")

    def delay(self, failures: int, random: randomness.Random) -> float:
        """Seconds to wait after so many failures in a row (the first failure is 1); never more than `most`."""
        if failures < 1:
            return 0.0
        delay = self._plain(failures)
        return min(delay * random.uniform(1 - self.jitter, 1 + self.jitter), self.most)

    def _plain(self, failures: int) -> float:
        # 2.0 ** 1024 overflows: an object can fail that often in a day, so compare exponents first.
        if self.factor > 1 and failures - 1 >= math.log(self.most / self.first, self.factor):
            return self.most
        return self.first * self.factor ** (failures - 1)
