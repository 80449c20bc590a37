"""Scheduling across clusters: filters and scores, verdicts, namespace slices, and the schedulers of a pool."""
