"""What schedulers know of a cluster, kept up to date by its caches."""
