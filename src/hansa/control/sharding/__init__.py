"""Work shared by the replicas of a program: each shard of its keys belongs to at most one member at any time."""
