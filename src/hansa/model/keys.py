"""Every label, annotation and finalizer key that Hansa writes or reads, once each."""

# The stamp of a lower object. The label selects all copies of one upper cluster, annotations name the upper object.
UPPER = "hansa.dev/upper"  # label: the id of the upper cluster
UPPER_UID = "hansa.dev/upper-uid"  # annotation: the uid of the upper object
UPPER_NAME = "hansa.dev/upper-name"  # annotation: namespace/name of the upper object
ROUTE = "hansa.dev/route"  # annotation: the virtual nodes of the route that created it, separated by commas
CARRIED = "hansa.dev/carried"  # annotation: the keys that were synced from the upper object, "labels;annotations"

# On lower objects.
IMAGES = "hansa.dev/images"  # annotation of a pod: the images of its upper pod, before admission replaced any

# Annotation of a token's Secret: the time at which the token is replaced.
TOKEN_REFRESH = "hansa.dev/token-refresh"  # noqa: S105

# On upper objects.
LOWER_UID = "hansa.dev/lower-uid"  # annotation: the uid of the lower object that its status came from

# Keys of tensile-kube.
VIRTUAL_POD = "virtual-pod"  # label, "true" on every lower pod
CLUSTER_SELECTOR = "clusterSelector"  # annotation: scheduling constraints that apply in the lower cluster
TRIPPED_LABELS = "tripped-labels"  # annotation: labels that were not synced down, as JSON
GLOBAL = "global"  # annotation, "true" on copies of objects that pods refer to
VIRTUAL_KUBELET_TYPE = "type"  # node label, "virtual-kubelet"
CLUSTER_ID = "clusterID"  # node label: the lower cluster that a virtual node represents
PROVIDER_TAINT = "virtual-kubelet.io/provider"
SELECTED_NODE = "volume.kubernetes.io/selected-node"  # annotation of a claim: the node that its volume is for

# tensile-kube's descheduler.
CREATED_BY_DESCHEDULER = "create-by-descheduler"  # label

# Virtual nodes.
VIRTUAL_NODE = "hansa.dev/virtual-node"  # label, "true" on every node of ours
NODE_LOWER = "hansa.dev/lower"  # annotation: the lower cluster that a node represents
NODE_LABELS = "hansa.dev/node-labels"  # annotation: the keys of the labels that we set; others are kept
NODE_TAINT = "hansa.dev/node-taint"  # annotation: the taint that we set; one that a user removed is not added again
# Of a virtual node: owners whose pods its cluster could not schedule, each with the time until which they avoid it.
REFUSED_OWNERS = "hansa.dev/refused-owners"
AVOIDS = "hansa.dev/avoids"  # annotation of a pod: the virtual nodes that it avoids, separated by commas
ROOM = "hansa.dev/room"  # annotation of a virtual node: when its lower cluster got room for a pod that it refused

# Objects that `hansa install` created.
INSTALLED = "hansa.dev/installed"  # label: the mode
INSTALLATION = "hansa.dev/installation"  # annotation: namespace/mode

# The webhook.
WEBHOOK = "hansa.dev/webhook"  # label of a pod, or of a namespace for all pods in it; "off" opts out

# Keys of VirtualCluster. The domain is reserved: a tenant's own keys in it are not synced.
TENANCY = "tenancy.x-k8s.io"
TRANSPARENCY = "transparency.tenancy.x-k8s.io"

# Annotations of every copy of a tenant's object (of a namespace: without the owners).
TENANT_CLUSTER = "tenancy.x-k8s.io/cluster"  # the tenant's key; a label of pods as well
TENANT_UID = "tenancy.x-k8s.io/uid"  # the uid in the tenant
TENANT_OWNERS = "tenancy.x-k8s.io/ownerReferences"  # the ownerReferences in the tenant, as JSON
TENANT_NAMESPACE = "tenancy.x-k8s.io/namespace"  # the namespace in the tenant
VC_NAME = "tenancy.x-k8s.io/vcname"  # the VirtualCluster; a label as well
VC_NAMESPACE = "tenancy.x-k8s.io/vcnamespace"  # a label as well
VC_UID = "tenancy.x-k8s.io/vcuid"  # of namespaces only
VC_ROOT_NAMESPACE = "tenancy.x-k8s.io/vcrootns"  # "true" on the namespace of a tenant's control plane
META = "hansa.dev/meta"  # of namespaces and service ranges: the id of the meta cluster of the VirtualCluster
CONTROLLED = "tenancy.x-k8s.io/controlled"  # label, "true" on objects that the manager created

# Labels of a super pod, "true" if a NetworkPolicy of its tenant selects it, by direction.
INGRESS_POLICY = "tenancy.x-k8s.io/ingress-policy"
EGRESS_POLICY = "tenancy.x-k8s.io/egress-policy"
BUDGET = "tenancy.x-k8s.io/budget"  # label of a super pod: the PodDisruptionBudget of its tenant that selects it

# Of single kinds.
CLUSTER_IP = "tenancy.x-k8s.io/clusterIP"  # annotation of a super Service: the cluster IP in the tenant
# Annotation of a tenant's Service: the cluster IP in the super cluster, if it differs.
SUPER_CLUSTER_IP = "transparency.tenancy.x-k8s.io/clusterIP"
NODE_PORTS = "tenancy.x-k8s.io/nodePorts"  # annotation of a super Service: the node ports in the tenant
# Of a tenant's Service: those in the super cluster, if they differ; in a pool with "." and a super cluster's id.
SUPER_NODE_PORTS = "transparency.tenancy.x-k8s.io/nodePorts"
TOKEN_NAME = "tenancy.x-k8s.io/secret.name"  # noqa: S105 - annotation of a copied token: its name in the tenant
TOKEN_UID = "tenancy.x-k8s.io/secret.UID"  # noqa: S105 - label of a copied token: its uid in the tenant
TENANT_NODE = "tenancy.x-k8s.io/virtualnode"  # label, "true" on a tenant's virtual nodes
SUPER_CLUSTER_ID = "tenancy.x-k8s.io/superclusterid"  # label of a tenant's node: the super cluster that it is in
NAMESPACE_LABEL = "namespace.tenancy.x-k8s.io"  # labels of a super namespace: those that it has in the tenant
DOWNWARD = "downward.tenancy.x-k8s.io"  # annotations of a super pod: the tenant's values of fields that differ

# Set by users and administrators.
SUPER_PUBLIC = "tenancy.x-k8s.io/super.public"  # label, "true" on classes and CRDs of the super cluster for all tenants
OFFERED_TO = "tenancy.x-k8s.io/offered-to"  # annotation of a class: VirtualClusters, as namespace/name, comma-separated
ALLOW = "tenancy.x-k8s.io/allow"  # annotation of a VirtualCluster: restrictions that are lifted for it
SYNCED_ANNOTATIONS = "tenancy.x-k8s.io/synced-annotations"  # annotation of a VirtualCluster: annotations that it syncs
ENDPOINT_ADDRESSES = "tenancy.x-k8s.io/endpoint-addresses"  # of a VirtualCluster: CIDRs that its endpoints may have
EXTERNAL_NAMES = "tenancy.x-k8s.io/external-names"  # of a VirtualCluster: names that its ExternalName Services may have
INGRESS_HOSTS = "tenancy.x-k8s.io/ingress-hosts"  # of a VirtualCluster: hosts that its Ingresses may have
POD_SECURITY = "tenancy.x-k8s.io/pod-security"  # annotation of a VirtualCluster: baseline or restricted
POD_SECURITY_ENFORCED = "pod-security.kubernetes.io/enforce"  # label of a namespace, read by the API server
INGRESS_PEERS = "tenancy.x-k8s.io/ingress-peers"  # of a VirtualCluster: who may reach its pods
EGRESS_PEERS = "tenancy.x-k8s.io/egress-peers"  # of a VirtualCluster: what its pods may reach
WEIGHT = "tenancy.x-k8s.io/weight"  # annotation of a VirtualCluster: its share of the queue
DNS = "tenancy.x-k8s.io/dns"  # annotation of a VirtualCluster: whether it gets a DNS of ours, "true" or "false"
TENANT_DNS = "hansa.dev/tenant-dns"  # label of the objects of that DNS; of a Deployment in a pool: its super cluster
KEEP_DNS_POLICY = "tenancy.x-k8s.io/disable.dnsPolicyMutation"  # label of a tenant's pod, "true"
ADMIN_KUBECONFIG = "tenancy.x-k8s.io/admin-kubeconfig"  # annotation of a VirtualCluster: its kubeconfig, base64
ADMIN_KUBECONFIG_SECRET = "tenancy.x-k8s.io/secret.admin-kubeconfig"  # noqa: S105 - annotation: the Secret with it
EXTERNAL_DOMAIN = "tenancy.x-k8s.io/external-apiserver-domain"  # label of a VirtualCluster: one more name of its server
READY_FOR_UPGRADE = "tenancy.x-k8s.io/ready-for-upgrade"  # label of a VirtualCluster, "true"
VERSION_APPLIED = (
    "tenancy.x-k8s.io/cluster-version-applied"  # label of a VirtualCluster: resourceVersion of its version
)
VERSION_BINARIES = (
    "hansa.dev/binaries"  # annotation of a ClusterVersion: a directory of binaries, relative to the manager's
)
VC_FINALIZER = "virtualcluster.finalizer."  # followed by the name of a provisioner

# The pool of super clusters: annotations of a tenant's namespaces and pods. They are synced despite their domain.
POOL = ("scheduler.tenancy.x-k8s.io", "scheduler.virtualcluster.io")
SLICE = "scheduler.tenancy.x-k8s.io/slice"  # of a namespace: the size of a slice of its quota, as JSON
PLACEMENTS = "scheduler.tenancy.x-k8s.io/placements"  # of a namespace: the number of slices per super cluster, as JSON
SUPER_CLUSTER = "scheduler.tenancy.x-k8s.io/superCluster"  # of a pod: the super cluster that runs it
MOVED_FROM = "tenancy.x-k8s.io/moved-from."  # followed by an id; of a pod: a super cluster that may still have a copy
PLACEMENT_POLICY = "scheduler.tenancy.x-k8s.io/policy"  # of a namespace: spread, pack, or prefer with labels
BALANCER = "tenancy.x-k8s.io/balancer."  # followed by an id; of a Service: its addresses there, as JSON
SUPER_UID = "hansa.dev/super-uid"  # annotation of a Cluster: the uid of the kube-system namespace of its super cluster
PLANNED = "hansa.dev/planned"  # of a namespace: the last plan, as former versions wrote it; it is removed
HEADROOM = "hansa.dev/headroom"  # annotation of a super cluster's Cluster: the capacity that is kept free
FENCE_GRACE = "hansa.dev/fence-grace"  # of a fence: seconds from its expiry until its pods start elsewhere
FENCE_SEEN = "hansa.dev/fence-seen"  # of a fence: the last renewal that the agent saw, and its age in seconds
REACHES = "hansa.dev/reaches"  # label of a report: the super cluster that the reporter can reach
SHARES = "hansa.dev/shares"  # label of a replica's Lease: the group of replicas that share tenants
CLAIMS = "hansa.dev/claims"  # annotation of a replica's Lease: the shards that it serves or is about to serve, in hex
LEAVES = "hansa.dev/leaves"  # annotation of a replica's Lease, "true": it ends, and hands over its shards
AGENT = "hansa.dev/agent"  # of a super cluster's Cluster, "true": an agent there deletes its pods when it is cut off
LEAVING = "hansa.dev/leaving"  # annotation of a super cluster's Cluster, "true": its slices move to other clusters

# Keys of Admiralty's multicluster-scheduler.
FEDERATION = "multicluster.admiralty.io"  # the domain; labels of delegates have it as prefix
ENABLED = "multicluster-scheduler"  # label of a namespace, "enabled": the webhook mutates its pods

# Annotations of pods, set by users.
ELECT = "multicluster.admiralty.io/elect"  # the pod runs in a target; its value is ignored
NO_RESERVATION = "multicluster.admiralty.io/no-reservation"  # the delegate keeps its scheduler
# The constraints of the proxy pod, as the YAML of a part of a PodSpec.
PROXY_CONSTRAINTS = "multicluster.admiralty.io/proxy-pod-scheduling-constraints"
# The pod's own constraints apply to the proxy pod, not to the delegate.
USE_CONSTRAINTS = "multicluster.admiralty.io/use-constraints-from-spec-for-proxy-pod-scheduling"
NO_PREFIX = "multicluster.admiralty.io/no-prefix-label-regexp"  # labels "key=value" that match keep their key

# Of proxy pods, and of objects that are copied to targets.
SOURCE_POD = "multicluster.admiralty.io/sourcepod-manifest"  # annotation: the pod as its user created it, as YAML
HAS_FINALIZER = "multicluster.admiralty.io/has-finalizer"  # label, "true"
POD_FINALIZER = "multicluster.admiralty.io/multiclusterForegroundDeletion"
CANDIDATE = "hansa.dev/candidate"  # annotation of a proxy pod: the virtual node of the target that gets its delegate
PROXY_SCHEDULER = "admiralty-proxy"  # schedulerName of proxy pods

# Of delegates and other copies in targets.
PARENT_UID = "multicluster.admiralty.io/parent-uid"  # label: the uid in the source
PARENT_CLUSTER = "multicluster.admiralty.io/parent-cluster-name"  # label: the configured name of the source
PARENT_NAMESPACE = "multicluster.admiralty.io/parent-namespace"  # annotation
PARENT_NAME = "multicluster.admiralty.io/parent-name"  # annotation
IS_DELEGATE = "multicluster.admiralty.io/is-delegate"  # annotation of copied services and ingresses

# Of services and ingresses.
# Annotation, "true" if it is copied to the targets; a label as well where its EndpointSlices are, which get it from it.
GLOBAL_SERVICE = "multicluster.admiralty.io/global"
ORIGINAL_SELECTOR = "multicluster.admiralty.io/original-selector"  # annotation: "key=value,…" before the reroute
CILIUM_GLOBAL_FORMER = "io.cilium/global-service"  # annotation, "true"; the key until Cilium 1.12
CILIUM_GLOBAL = "service.cilium.io/global"  # annotation, "true"
ENDPOINTS_OF = "hansa.dev/endpoints-of"  # label of an EndpointSlice: the virtual node of the target that they are in
EXPORTED_SERVICE = "multicluster.kubernetes.io/service-name"  # label of slices and derived Services of an export
EXPORTING_CLUSTER = "multicluster.kubernetes.io/source-cluster"  # label of exported slices
SERVICE_NAME = "kubernetes.io/service-name"  # label of an EndpointSlice
HEADLESS = "service.kubernetes.io/headless"  # label of an EndpointSlice
REROUTED = "hansa.dev/rerouted"  # annotation: the annotations that the reroute added, removed with it

# Of targets and their virtual nodes.
TARGET_FINALIZER = "multicluster.admiralty.io/target"  # of a Target: its virtual node and delegates are deleted first
TARGET_NAMESPACE = "multicluster.admiralty.io/target-namespace"  # label of a virtual node: that of its Target
TARGET_NAME = "multicluster.admiralty.io/target-name"  # label of a virtual node: its Target
CLUSTER_TARGET_NAME = "multicluster.admiralty.io/cluster-target-name"  # label of a virtual node: its ClusterTarget

# Of what the source controller makes.
SOURCE_FINALIZER = "multicluster.admiralty.io/source"  # of a Source: its bindings are deleted first
SOURCE = "hansa.dev/source"  # annotation of a service account, binding or token: the Source that it is made for
TOKEN_ACCOUNT = "kubernetes.io/service-account.name"  # noqa: S105 - annotation of a token: its service account

# Of definitions that an agent installs, and others may install as well.
MANAGED_BY = "app.kubernetes.io/managed-by"  # label: who removes them
