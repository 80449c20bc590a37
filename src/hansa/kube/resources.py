"""The built-in resources that are used here. Others are `Resource(group, version, plural)` or found by discovery."""

from hansa.kube.resource import Resource

PODS = Resource("", "v1", "pods", kind="Pod")
NODES = Resource("", "v1", "nodes", kind="Node", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", kind="Namespace", namespaced=False)
SERVICES = Resource("", "v1", "services", kind="Service")
ENDPOINTS = Resource("", "v1", "endpoints", kind="Endpoints")
CONFIG_MAPS = Resource("", "v1", "configmaps", kind="ConfigMap")
SECRETS = Resource("", "v1", "secrets", kind="Secret")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", kind="ServiceAccount")
QUOTAS = Resource("", "v1", "resourcequotas", kind="ResourceQuota")
PERSISTENT_VOLUMES = Resource("", "v1", "persistentvolumes", kind="PersistentVolume", namespaced=False)
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", kind="PersistentVolumeClaim")
EVENTS = Resource("", "v1", "events", kind="Event")
DEPLOYMENTS = Resource("apps", "v1", "deployments", kind="Deployment")
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", kind="StatefulSet")
DAEMON_SETS = Resource("apps", "v1", "daemonsets", kind="DaemonSet")
JOBS = Resource("batch", "v1", "jobs", kind="Job")
LEASES = Resource("coordination.k8s.io", "v1", "leases", kind="Lease")
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", kind="EndpointSlice")
INGRESSES = Resource("networking.k8s.io", "v1", "ingresses", kind="Ingress")
INGRESS_CLASSES = Resource("networking.k8s.io", "v1", "ingressclasses", kind="IngressClass", namespaced=False)
NETWORK_POLICIES = Resource("networking.k8s.io", "v1", "networkpolicies", kind="NetworkPolicy")
POD_DISRUPTION_BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", kind="PodDisruptionBudget")
STORAGE_CLASSES = Resource("storage.k8s.io", "v1", "storageclasses", kind="StorageClass", namespaced=False)
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", kind="PriorityClass", namespaced=False)
RUNTIME_CLASSES = Resource("node.k8s.io", "v1", "runtimeclasses", kind="RuntimeClass", namespaced=False)
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", kind="Role")
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", kind="RoleBinding")
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", kind="ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", kind="ClusterRoleBinding", namespaced=False
)
CUSTOM_RESOURCE_DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", kind="CustomResourceDefinition", namespaced=False
)
TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", kind="TokenReview", namespaced=False)
SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", kind="SubjectAccessReview", namespaced=False
)
CERTIFICATE_SIGNING_REQUESTS = Resource(
    "certificates.k8s.io",
    "v1",
    "certificatesigningrequests",
    kind="CertificateSigningRequest",
    namespaced=False,
)
