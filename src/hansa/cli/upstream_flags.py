"""The flags of upstream programs that have no effect in Hansa, each with the reason.

Flags with an effect are in the modules of the commands.
"""

from typing import Final

from hansa.cli.unused_flags import UnusedFlag

_LIMITS: Final = "API servers limit the rate"
_LOGS: Final = "logs go to stderr"
_LEASE: Final = "leader election uses a Lease with fixed times"
_SERVER: Final = "the address is that of the kubeconfig"
_METRICS: Final = "use --metrics-addr"
_TOKENS: Final = "pods get tokens of their tenant only"
_KUBELET: Final = "the upper API server authenticates and authorizes its users"

KLOG: Final = (
    *(
        UnusedFlag(name, _LOGS, is_boolean=True)
        for name in (
            "add-dir-header",
            "alsologtostderr",
            "logtostderr",
            "one-output",
            "skip-headers",
            "skip-log-headers",
        )
    ),
    *(UnusedFlag(name, _LOGS) for name in ("log-dir", "log-file", "log-file-max-size", "stderrthreshold")),
    *(UnusedFlag(name, "use --log-level") for name in ("log-backtrace-at", "vmodule")),
    UnusedFlag("log-flush-frequency", "log lines are written at once"),
)
LEADER_ELECTION: Final = tuple(
    UnusedFlag(f"--leader-elect-{name}", _LEASE)
    for name in ("lease-duration", "renew-deadline", "retry-period", "resource-lock", "resource-name")
)
SYNCER: Final = (
    *LEADER_ELECTION,
    UnusedFlag("--lock-object-namespace", "use --leader-elect-namespace"),
    UnusedFlag("--lock-object-name", "use --syncer-name"),
    UnusedFlag("--super-master", _SERVER),
    UnusedFlag("--meta-cluster-address", _SERVER),
    UnusedFlag("--super-master-timeout", "every request has a deadline"),
    UnusedFlag("--disable-service-account-token", _TOKENS, is_boolean=True),
    UnusedFlag("--disable-service-links", "pods get the variables of their tenant's Services", is_boolean=True),
    UnusedFlag("--vn-agent-namespace-name", "use --vn-agent-address"),
    UnusedFlag("--vn-agent-label-selector", "use --vn-agent-address"),
    *(UnusedFlag(name, _METRICS) for name in ("--address", "--port", "--cert-file", "--key-file")),
)
SCHEDULER: Final = (
    *LEADER_ELECTION,
    UnusedFlag("--lock-object-namespace", "use --leader-elect-namespace"),
    UnusedFlag("--lock-object-name", _LEASE),
    UnusedFlag("--meta-cluster", _SERVER),
    *(UnusedFlag(name, _METRICS) for name in ("--address", "--port", "--cert-file", "--key-file")),
)
MANAGER: Final = (
    *LEADER_ELECTION,
    UnusedFlag("--le-cm-name", _LEASE),
    UnusedFlag("--health-addr", _METRICS),
    UnusedFlag("--enable-webhook", "the schema of VirtualClusters has its rules", is_boolean=True),
    UnusedFlag("--disable-stacktrace", "logs have stack traces of unexpected errors only", is_boolean=True),
)
VIRTUAL_NODE: Final = (
    *(UnusedFlag(f"--{name}", _LIMITS) for name in ("kube-api-qps", "kube-api-burst", "client-qps", "client-burst")),
    UnusedFlag("--namespace", "pods of all namespaces are synced; use --excluded-namespaces"),
    UnusedFlag("--cluster-domain", "Service names are resolved in the lower cluster"),
    UnusedFlag("--os", "nodes have the labels of their lower cluster"),
    UnusedFlag("--provider-config", "the lower cluster is given by --client-kubeconfig"),
    UnusedFlag("--taint", "use $VKUBELET_TAINT_KEY"),
    UnusedFlag("--pod-sync-workers", "requests in flight are bounded for each cluster"),
    UnusedFlag("--enable-node-lease", "virtual nodes always have a Lease", is_boolean=True),
    UnusedFlag("--full-resync-period", "everything is compared each minute"),
    UnusedFlag("--startup-timeout", "the program waits for its clusters"),
    UnusedFlag("--enable-serviceaccount", "pods always have tokens of their service account", is_boolean=True),
    UnusedFlag("--client-verify-ca", _KUBELET),
    UnusedFlag("--no-verify-clients", _KUBELET, is_boolean=True),
    UnusedFlag("--authentication-token-webhook", _KUBELET, is_boolean=True),
    *(
        UnusedFlag(name, _KUBELET)
        for name in (
            "--authentication-token-webhook-cache-ttl",
            "--authorization-webhook-cache-authorized-ttl",
            "--authorization-webhook-cache-unauthorized-ttl",
        )
    ),
)
MULTI_SCHEDULER: Final = (
    *LEADER_ELECTION,
    UnusedFlag("--master", _SERVER),
    *(
        UnusedFlag(name, "the extender listens on loopback, for kube-scheduler alone")
        for name in ("--authentication-kubeconfig", "--authorization-kubeconfig", "--secure-port")
    ),
    *(UnusedFlag(f"--kube-api-{name}", _LIMITS) for name in ("qps", "burst")),
)
VN_AGENT: Final = (
    UnusedFlag("--client-ca-file", "VirtualClusters have the CAs of tenants"),
    UnusedFlag("--cert-dir", "use --tls-cert-file, or the certificate of the super cluster's signer"),
    UnusedFlag("--enable-metrics", _METRICS, is_boolean=True),
)
DESCHEDULER: Final = (
    *LEADER_ELECTION,
    UnusedFlag("--node-selector", "pods on virtual nodes are moved; use namespaces or labelSelector of the policy"),
    UnusedFlag("--evict-local-storage-pods", "a pod that never started has no local data", is_boolean=True),
)
WEBHOOK: Final = (
    UnusedFlag("--master", _SERVER),
    UnusedFlag("--incluster", "without --kubeconfig the service account of the pod is used", is_boolean=True),
)
