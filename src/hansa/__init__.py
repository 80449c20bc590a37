"""Hansa joins Kubernetes clusters into a league."""

__version__ = "0.1.0"
