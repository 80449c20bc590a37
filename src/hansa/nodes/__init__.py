"""Virtual nodes: each stands in an upper cluster for a lower cluster. What runs on them is left to the engine."""
