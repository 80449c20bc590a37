"""Starts, finds, probes and ends programs of this machine, and gets their binaries.

Used by local clusters and by tenants whose control planes are processes. It contains nothing about clusters or tenants.
"""
