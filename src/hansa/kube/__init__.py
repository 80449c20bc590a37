"""One API server on the wire, and the pure parts of its language. The only layer that opens connections to one."""
