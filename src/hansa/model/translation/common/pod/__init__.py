"""Translation steps of pods that several modes use."""
