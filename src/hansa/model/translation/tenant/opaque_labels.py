"""Labels of tenants' objects that controllers of a super cluster obey, as patterns. They are not synced down.

All other labels are: Services, NetworkPolicies and budgets select pods by any of them. So this list cannot be an
allow-list; an administrator extends it with what the controllers of the own super cluster read.
"""

from typing import Final

# By the reason for which a tenant must not set them in the super cluster.
REASONS: Final = {
    "sets the level, version or exemption of admission": (
        *("pod-security.kubernetes.io/*", "admission.gatekeeper.sh/*", "policies.kyverno.io/*", "cleanup.kyverno.io/*"),
        *("security.openshift.io/*", "openshift.io/*", "config.openshift.io/*"),
    ),
    "describes where a pod or node is, and excludes it from load balancers; the super cluster sets it": (
        *("topology.kubernetes.io/*", "failure-domain.beta.kubernetes.io/*"),
        *("node.kubernetes.io/*", "node-role.kubernetes.io/*"),
    ),
    "gives an object to a controller that changes or deletes it, or takes credentials from it": (
        *("addonmanager.kubernetes.io/*", "kubernetes.io/cluster-service", "argocd.argoproj.io/*"),
        *("kustomize.toolkit.fluxcd.io/*", "helm.toolkit.fluxcd.io/*", "velero.io/*", "kueue.x-k8s.io/*"),
        *("controller.cert-manager.io/*", "sealedsecrets.bitnami.com/*", "recurring-job.longhorn.io/*"),
    ),
    "adds containers to a pod, which run with rights of the mesh or agent": (
        *("istio.io/*", "sidecar.istio.io/*", "linkerd.io/*", "admission.datadoghq.com/*"),
    ),
    "gives a pod an identity in a cloud": ("azure.workload.identity/*", "aadpodidbinding"),
    "is loaded into a dashboard that all see": ("grafana_dashboard", "grafana_datasource", "grafana_alert"),
    "is the namespace or service account of a pod for network policies of a plugin": (
        *("io.cilium.*", "io.kubernetes.*", "projectcalico.org/*"),
    ),
}
DEFAULT: Final = frozenset(pattern for patterns in REASONS.values() for pattern in patterns)
