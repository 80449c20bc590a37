"""Namespace slices: quotas laid out over clusters, and the cluster of a pod within them. Pure."""
