"""The namespace and pod schedulers of a pool: they watch clusters, and write placements to annotations."""
