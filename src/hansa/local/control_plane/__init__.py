"""The control plane of one local cluster: command lines, certificates, kubeconfigs, processes, readiness."""
