"""Namespace slices: the plan that distributes a quota over clusters, and the choice of a pod's cluster. Pure."""
