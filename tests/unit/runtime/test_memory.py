"""Objects that are excluded from garbage collection."""

import gc

from hansa.runtime import memory


def test_existing_objects_are_excluded_from_garbage_collection():
    kept = [[] for _ in range(1000)]
    try:
        memory.freeze()
        assert gc.get_freeze_count() > len(kept)
    finally:
        gc.unfreeze()
