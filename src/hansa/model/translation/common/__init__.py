"""Translation steps that several modes use, one module per kind."""
