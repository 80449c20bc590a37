"""Values of the Kubernetes API: quantities, selectors, affinity, tolerations. Pure, no I/O."""
