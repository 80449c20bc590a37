"""Virtual nodes: Nodes of an upper cluster, each of which represents a lower cluster. The engine syncs their pods."""
