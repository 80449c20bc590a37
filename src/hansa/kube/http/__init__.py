"""HTTP/1.1 and TLS on the wire: connections, framing, pooling, upgraded tunnels. No Kubernetes words."""
