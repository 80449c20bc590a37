"""What every layer needs and what knows nothing of Kubernetes: errors, clock, tasks, back-off, metrics."""
