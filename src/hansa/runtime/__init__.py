"""What every layer uses and what is not about Kubernetes: errors, clock, tasks, back-off, metrics, logs."""
