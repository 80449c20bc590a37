"""The provisioner `process`, the default of `hansa vc-manager`: control planes as processes on this machine."""
