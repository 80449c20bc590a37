"""Every label, annotation and finalizer key that Hansa writes or reads, once each."""

# Whose a lower object is. Labels select all copies of one upper cluster, annotations tell which object it is.
UPPER = "hansa.dev/upper"  # label: the id of the upper cluster
UPPER_UID = "hansa.dev/upper-uid"  # annotation: the uid of the upper object
UPPER_NAME = "hansa.dev/upper-name"  # annotation: namespace/name of the upper object
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
