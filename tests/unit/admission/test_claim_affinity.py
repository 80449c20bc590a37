"""A pod requires the virtual node of the cluster that has its volumes."""

from hansa.admission import claim_affinity
from hansa.kube.objects import Object

VIRTUAL = {"vn1", "vn2"}.__contains__


def pod(*claims, **spec):
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    return {"spec": {"volumes": [{"name": "tmp", "emptyDir": {}}, *volumes], **spec}}


def claim(selected="", volume=""):
    metadata = {"name": "c", "annotations": {"volume.kubernetes.io/selected-node": selected} if selected else {}}
    return Object.of({"metadata": metadata, "spec": {"volumeName": volume} if volume else {}})


def volume(*hosts):
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [*hosts]}]}]
    return Object.of({"metadata": {"name": "v"}, "spec": {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}})


def node_of(pod, claims=None, volumes=None):
    return claim_affinity.node_of_claims(pod, claim=(claims or {}).get, volume=(volumes or {}).get, is_virtual=VIRTUAL)


def test_the_selected_node_of_a_claim_is_required():
    assert node_of(pod("a"), {"a": claim("vn2")}) == "vn2"


def test_the_node_affinity_of_a_bound_volume_is_required():
    assert node_of(pod("a"), {"a": claim(volume="v")}, {"v": volume("vn1")}) == "vn1"


def test_the_first_claim_with_a_node_decides():
    assert node_of(pod("new", "old"), {"new": claim(), "old": claim("vn1")}) == "vn1"


def test_real_nodes_wide_volumes_and_unknown_claims_require_no_node():
    assert node_of(pod()) is None
    assert node_of(pod("gone")) is None
    assert node_of(pod("a"), {"a": claim("real-node")}) is None
    assert node_of(pod("a"), {"a": claim(volume="v")}, {"v": volume("vn1", "vn2")}) is None
    assert node_of(pod("a"), {"a": claim(volume="v")}, {"v": volume("real-node")}) is None


def test_the_node_is_required_by_node_selector():
    pinned = claim_affinity.require_node(pod(nodeSelector={"clusterID": "a"}), "vn1")
    assert pinned["spec"]["nodeSelector"] == {"clusterID": "a", "kubernetes.io/hostname": "vn1"}
    assert claim_affinity.require_node(pinned, "vn1") == pinned


def test_a_node_that_the_user_chose_is_kept():
    by_hand = pod(nodeSelector={"kubernetes.io/hostname": "vn2"})
    assert claim_affinity.require_node(by_hand, "vn1") == by_hand
    assert claim_affinity.require_node(pod(nodeName="vn2"), "vn1") == pod(nodeName="vn2")
    assert claim_affinity.require_node(pod(), None) == pod()
