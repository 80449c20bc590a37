"""Control planes of tenants as processes on this machine: what `hansa vc-manager` runs without being told otherwise."""
