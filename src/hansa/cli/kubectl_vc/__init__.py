"""`kubectl vc`: tenants' control planes for people. kubectl runs `kubectl-vc` when it is on the PATH."""
