"""The view of one upper cluster: caches in, pairs out. Nothing here writes or awaits."""
