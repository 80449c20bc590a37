"""Rounds of random work for `make soak`, each with a seed that is printed, until the time is over."""

import os
import random
import sys
import time
from collections.abc import Iterator


def seeds() -> Iterator[int]:
    """A seed for each round, for SOAK_MINUTES; SOAK_SEED repeats one round.

    There is at least one round, and the last one runs to its end.
    """
    if given := os.environ.get("SOAK_SEED"):
        yield int(given)
        return
    end = time.monotonic() + 60 * float(os.environ.get("SOAK_MINUTES") or 0)
    while True:
        seed = random.SystemRandom().randrange(10**6)
        print(f"\nseed {seed} (SOAK_SEED={seed} repeats it)", file=sys.stderr, flush=True)  # noqa: T201
        yield seed
        if time.monotonic() > end:
            return
