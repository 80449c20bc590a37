"""Tenants and their VirtualClusters: control planes (operator), sync to super clusters (syncing), and the pool."""
