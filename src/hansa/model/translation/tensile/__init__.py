"""Translation steps of tensile mode: a lower cluster behind a virtual node."""
