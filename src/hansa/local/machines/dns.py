"""The manifests of cluster DNS (CoreDNS). Names outside the cluster do not resolve: the network has no uplink."""

from ipaddress import IPv4Address
from typing import Any

from hansa.local.machines import images, node

NAME, NAMESPACE = "coredns", "kube-system"
# The service name that Kubernetes tools expect.
SERVICE = "kube-dns"
LABELS = {"k8s-app": SERVICE}

COREFILE = """cluster.local in-addr.arpa ip6.arpa {
    errors
    health
    ready
    kubernetes {
        pods insecure
        ttl 5
    }
    loadbalance
    reload
}
. {
    errors
    template ANY ANY {
        rcode NXDOMAIN
    }
}
"""


def manifests(address: IPv4Address) -> list[dict[str, Any]]:
    """All objects of cluster DNS; its service has the address."""
    return [
        _object("v1", "ServiceAccount"),
        _object("rbac.authorization.k8s.io/v1", "ClusterRole", namespace=None, rules=_rules()),
        _object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", namespace=None, **_binding()),
        _object("v1", "ConfigMap", data={"Corefile": COREFILE}),
        _object("apps/v1", "Deployment", spec=_deployment()),
        _object("v1", "Service", name=SERVICE, spec=_service(address)),
    ]


def _object(
    version: str, kind: str, *, name: str = NAME, namespace: str | None = NAMESPACE, **rest: Any
) -> dict[str, Any]:
    metadata = {"name": name if namespace else f"system:{name}", "labels": LABELS}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}


def _rules() -> list[dict[str, Any]]:
    verbs = ["list", "watch"]
    return [
        {"apiGroups": [""], "resources": ["services", "pods", "namespaces"], "verbs": verbs},
        {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": verbs},
    ]


def _binding() -> dict[str, Any]:
    return {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": f"system:{NAME}"},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}],
    }


def _deployment() -> dict[str, Any]:
    container = {
        "name": NAME,
        "image": images.COREDNS,
        "imagePullPolicy": "IfNotPresent",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "ports": [
            {"name": "dns", "containerPort": 53, "protocol": "UDP"},
            {"name": "dns-tcp", "containerPort": 53, "protocol": "TCP"},
        ],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
        "livenessProbe": {"httpGet": {"path": "/health", "port": 8080}, "initialDelaySeconds": 30},
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "170Mi"}},
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": True}],
    }
    pod = {
        "serviceAccountName": NAME,
        "priorityClassName": "system-cluster-critical",
        "dnsPolicy": "Default",
        # On a kwok node it would count as running without answering queries.
        "nodeSelector": node.REAL_LABEL,
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "volumes": [{"name": "config", "configMap": {"name": NAME}}],
    }
    return {
        "replicas": 1,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": pod},
    }


def _service(address: IPv4Address) -> dict[str, Any]:
    return {
        "selector": LABELS,
        "clusterIP": str(address),
        "ports": [
            {"name": "dns", "port": 53, "protocol": "UDP", "targetPort": 53},
            {"name": "dns-tcp", "port": 53, "protocol": "TCP", "targetPort": 53},
        ],
    }
