"""Hansa syncs workloads between Kubernetes clusters."""

__version__ = "0.1.0"
