"""The client of one API server, and pure parsers of its API types. The only layer that opens connections to one."""
