"""Every label, annotation and finalizer key that Hansa writes or reads, once each."""

# Whose a lower object is. Labels select all copies of one upper cluster, annotations tell which object it is.
UPPER = "hansa.dev/upper"  # label: the id of the upper cluster
UPPER_UID = "hansa.dev/upper-uid"  # annotation: the uid of the upper object
UPPER_NAME = "hansa.dev/upper-name"  # annotation: namespace/name of the upper object
CARRIED = "hansa.dev/carried"  # annotation: the keys that came from the upper object, "labels;annotations"

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
