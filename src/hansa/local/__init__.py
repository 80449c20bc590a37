"""Real Kubernetes clusters on this machine, as plain processes."""
