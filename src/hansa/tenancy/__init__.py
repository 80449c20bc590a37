"""The tenant operator: a control plane for each VirtualCluster, whatever it runs on. The syncer is the engine's."""
