"""What a process holds."""

import gc

from hansa.runtime import memory


def test_what_is_there_is_not_looked_at_again():
    kept = [[] for _ in range(1000)]
    try:
        memory.settle()
        assert gc.get_freeze_count() > len(kept)
    finally:
        gc.unfreeze()
