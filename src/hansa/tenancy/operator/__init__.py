"""The tenant operator: a control plane for each VirtualCluster, as processes, StatefulSets or an existing cluster."""
