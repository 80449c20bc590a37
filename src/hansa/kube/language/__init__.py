"""The pure parts of the Kubernetes API's language: quantities, selectors, affinity, tolerations. No I/O."""
