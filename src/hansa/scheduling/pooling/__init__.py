"""The schedulers of a pool with I/O around them: they watch, decide by what is pure, and write annotations."""
