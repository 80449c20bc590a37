"""One upper cluster as the engine sees it: caches in, pairs out. Nothing here writes or waits."""
