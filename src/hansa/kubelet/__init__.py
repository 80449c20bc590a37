"""The kubelet API of virtual nodes: logs, exec, attach and port-forward of pods that run in lower clusters."""
