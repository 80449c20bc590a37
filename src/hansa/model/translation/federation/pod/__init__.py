"""A proxy pod of a source cluster and its delegate in a target: the way down, the way up, and their lives."""
