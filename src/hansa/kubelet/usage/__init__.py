"""CPU and memory of the pods of a virtual node, as a kubelet reports them: read from the lower cluster, bounded."""
