"""Every label, annotation and finalizer key that Hansa writes or reads, once each."""

# Whose a lower object is. Labels select all copies of one upper cluster, annotations tell which object it is.
UPPER = "hansa.dev/upper"  # label: the id of the upper cluster
UPPER_UID = "hansa.dev/upper-uid"  # annotation: the uid of the upper object
UPPER_NAME = "hansa.dev/upper-name"  # annotation: namespace/name of the upper object
ROUTE = "hansa.dev/route"  # annotation: the virtual nodes of the route that brought it, with commas
CARRIED = "hansa.dev/carried"  # annotation: the keys that came from the upper object, "labels;annotations"

# What a lower object remembers.
IMAGES = (
    "hansa.dev/images"  # annotation of a pod: the images that its upper one asked for, whatever admission made of it
)

# Annotation of a token's Secret: when the token is to be replaced.
TOKEN_REFRESH = "hansa.dev/token-refresh"  # noqa: S105

# On upper objects.
LOWER_UID = "hansa.dev/lower-uid"  # annotation: the uid of the lower object that its status came from

# tensile-kube's own words.
VIRTUAL_POD = "virtual-pod"  # label, "true" on every lower pod
CLUSTER_SELECTOR = "clusterSelector"  # annotation: scheduling constraints that apply in the lower cluster
TRIPPED_LABELS = "tripped-labels"  # annotation: labels that were put aside on the way down
GLOBAL = "global"  # annotation, "true" on copies of what pods refer to
VIRTUAL_KUBELET_TYPE = "type"  # node label, "virtual-kubelet"
CLUSTER_ID = "clusterID"  # node label: which lower cluster a virtual node stands for
PROVIDER_TAINT = "virtual-kubelet.io/provider"
SELECTED_NODE = "volume.kubernetes.io/selected-node"  # annotation of a claim: the node that its volume is for

# tensile-kube's descheduler.
CREATED_BY_DESCHEDULER = "create-by-descheduler"  # label
UNSCHEDULABLE_NODE = "unschedulable-node"  # annotation

# Virtual nodes.
VIRTUAL_NODE = "hansa.dev/virtual-node"  # label, "true" on every node of ours
NODE_LOWER = "hansa.dev/lower"  # annotation: the lower cluster that a node stands for
NODE_LABELS = "hansa.dev/node-labels"  # annotation: the keys of the labels that we put; others are somebody else's
NODE_TAINT = "hansa.dev/node-taint"  # annotation: the taint that we put; one that a user took away stays away

# The webhook.
WEBHOOK = "hansa.dev/webhook"  # label of a pod, or of a namespace for all pods in it; "off" opts out

# VirtualCluster's own words. All of this domain are ours: what a tenant writes there itself stays with the tenant.
TENANCY = "tenancy.x-k8s.io"
TRANSPARENCY = "transparency.tenancy.x-k8s.io"

# Annotations of every copy of a tenant's object (of a namespace: without the owners).
TENANT_CLUSTER = "tenancy.x-k8s.io/cluster"  # the tenant's key; a label of pods as well
TENANT_UID = "tenancy.x-k8s.io/uid"  # the uid above
TENANT_OWNERS = "tenancy.x-k8s.io/ownerReferences"  # the owners above, as JSON
TENANT_NAMESPACE = "tenancy.x-k8s.io/namespace"  # the namespace above
VC_NAME = "tenancy.x-k8s.io/vcname"  # the VirtualCluster; a label as well
VC_NAMESPACE = "tenancy.x-k8s.io/vcnamespace"  # a label as well
VC_UID = "tenancy.x-k8s.io/vcuid"  # of namespaces only
VC_ROOT_NAMESPACE = "tenancy.x-k8s.io/vcrootns"  # "true" on the namespace of a tenant's control plane
META = "hansa.dev/meta"  # of namespaces and service ranges: the id of the meta cluster of the VirtualCluster
CONTROLLED = "tenancy.x-k8s.io/controlled"  # label, "true" on what the manager made

# Of single kinds.
CLUSTER_IP = "tenancy.x-k8s.io/clusterIP"  # annotation of a super Service: the address above
SUPER_CLUSTER_IP = "transparency.tenancy.x-k8s.io/clusterIP"  # annotation of a tenant's Service: the address below
NODE_PORTS = "tenancy.x-k8s.io/nodePorts"  # annotation of a super Service: the node ports that it was asked to have
# Of a tenant's Service: those below, if others were asked for; in a pool with a dot and the id of a super cluster.
SUPER_NODE_PORTS = "transparency.tenancy.x-k8s.io/nodePorts"
TOKEN_NAME = "tenancy.x-k8s.io/secret.name"  # noqa: S105 - annotation of a copied token: its name above
TOKEN_UID = "tenancy.x-k8s.io/secret.UID"  # noqa: S105 - label of a copied token: its uid above
TENANT_NODE = "tenancy.x-k8s.io/virtualnode"  # label, "true" on a tenant's virtual nodes
SUPER_CLUSTER_ID = "tenancy.x-k8s.io/superclusterid"  # label of a tenant's node: the super cluster that it is in
NAMESPACE_LABEL = "namespace.tenancy.x-k8s.io"  # labels of a super namespace: those that it has above
DOWNWARD = "downward.tenancy.x-k8s.io"  # annotations of a super pod: values that its own fields would tell wrong

# What people say by label or annotation.
SUPER_PUBLIC = "tenancy.x-k8s.io/super.public"  # label, "true" on classes and CRDs of the super cluster for all tenants
ALLOW = "tenancy.x-k8s.io/allow"  # annotation of a VirtualCluster: what its pods may, although it is refused by default
WEIGHT = "tenancy.x-k8s.io/weight"  # annotation of a VirtualCluster: its share when many wait
KEEP_DNS_POLICY = "tenancy.x-k8s.io/disable.dnsPolicyMutation"  # label of a tenant's pod, "true"
ADMIN_KUBECONFIG = "tenancy.x-k8s.io/admin-kubeconfig"  # annotation of a VirtualCluster: its kubeconfig, base64
ADMIN_KUBECONFIG_SECRET = "tenancy.x-k8s.io/secret.admin-kubeconfig"  # noqa: S105 - annotation: the Secret that has it
EXTERNAL_DOMAIN = "tenancy.x-k8s.io/external-apiserver-domain"  # label of a VirtualCluster: one more name of its server
READY_FOR_UPGRADE = "tenancy.x-k8s.io/ready-for-upgrade"  # label of a VirtualCluster, "true"
VERSION_APPLIED = (
    "tenancy.x-k8s.io/cluster-version-applied"  # label of a VirtualCluster: resourceVersion of its version
)
VERSION_BINARIES = "hansa.dev/binaries"  # annotation of a ClusterVersion: a folder of programs, below the manager's
VC_FINALIZER = "virtualcluster.finalizer."  # and the name of a provisioner

# The pool of super clusters: annotations of a tenant's namespaces and pods. They go down, although they end in k8s.io.
POOL = ("scheduler.tenancy.x-k8s.io", "scheduler.virtualcluster.io")
SLICE = "scheduler.tenancy.x-k8s.io/slice"  # of a namespace: the portion in which its quota is laid out
PLACEMENTS = "scheduler.tenancy.x-k8s.io/placements"  # of a namespace: how many slices each super cluster has
SUPER_CLUSTER = "scheduler.tenancy.x-k8s.io/superCluster"  # of a pod: the super cluster that runs it
MOVED_FROM = "tenancy.x-k8s.io/moved-from."  # and an id; of a pod: a super cluster that may have a copy of it yet
PLACEMENT_POLICY = "scheduler.tenancy.x-k8s.io/policy"  # of a namespace: spread, pack, or prefer with labels
BALANCER = "tenancy.x-k8s.io/balancer."  # and an id; of a Service: its addresses in that super cluster, as JSON
SUPER_UID = "hansa.dev/super-uid"  # annotation of a Cluster: the uid of the kube-system namespace of its super cluster
PLANNED = "hansa.dev/planned"  # of a namespace: what was planned last, by which an edit by hand is told
HEADROOM = "hansa.dev/headroom"  # annotation of a super cluster's Cluster: what of it is kept free
FENCE_GRACE = "hansa.dev/fence-grace"  # of a fence: seconds from its end until what is there begins elsewhere
FENCE_SEEN = "hansa.dev/fence-seen"  # of a fence: the renewal that the agent there sees, and for how many seconds
REACHES = "hansa.dev/reaches"  # label of a report: the super cluster that somebody reaches
AGENT = "hansa.dev/agent"  # of a super cluster's Cluster, "true": an agent there ends its pods when it is cut off
LEAVING = "hansa.dev/leaving"  # annotation of a super cluster's Cluster, "true": what is there goes elsewhere
