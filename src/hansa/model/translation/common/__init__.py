"""Translation steps that several modes use, one file a kind."""
