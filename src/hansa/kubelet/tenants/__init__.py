"""The vn-agent: the kubelet API of super nodes for tenants, each of which sees and reaches only its own pods."""
