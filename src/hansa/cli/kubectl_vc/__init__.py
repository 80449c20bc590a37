"""`kubectl vc`: commands for tenants' control planes. kubectl runs `kubectl-vc` as a plugin if it is on the PATH."""
