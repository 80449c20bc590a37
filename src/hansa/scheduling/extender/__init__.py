"""The scheduler extender of an upper cluster, which lets a virtual node take a pod only if a lower node fits it."""
