"""A pod goes where the volumes of its claims are."""

from hansa.admission import pinning
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
    return pinning.node_of(pod, claim=(claims or {}).get, volume=(volumes or {}).get, is_virtual=VIRTUAL)


def test_the_node_that_a_claim_was_given_to_is_taken():
    assert node_of(pod("a"), {"a": claim("vn2")}) == "vn2"


def test_a_bound_volume_that_is_tied_to_a_virtual_node_decides():
    assert node_of(pod("a"), {"a": claim(volume="v")}, {"v": volume("vn1")}) == "vn1"


def test_the_first_claim_that_knows_decides():
    assert node_of(pod("new", "old"), {"new": claim(), "old": claim("vn1")}) == "vn1"


def test_real_nodes_wide_volumes_and_unknown_claims_pin_nothing():
    assert node_of(pod()) is None
    assert node_of(pod("gone")) is None
    assert node_of(pod("a"), {"a": claim("real-node")}) is None
    assert node_of(pod("a"), {"a": claim(volume="v")}, {"v": volume("vn1", "vn2")}) is None
    assert node_of(pod("a"), {"a": claim(volume="v")}, {"v": volume("real-node")}) is None


def test_a_pinned_pod_asks_the_scheduler_for_the_node():
    pinned = pinning.pin(pod(nodeSelector={"clusterID": "a"}), "vn1")
    assert pinned["spec"]["nodeSelector"] == {"clusterID": "a", "kubernetes.io/hostname": "vn1"}
    assert pinning.pin(pinned, "vn1") == pinned


def test_a_node_that_was_chosen_by_hand_stays():
    by_hand = pod(nodeSelector={"kubernetes.io/hostname": "vn2"})
    assert pinning.pin(by_hand, "vn1") == by_hand
    assert pinning.pin(pod(nodeName="vn2"), "vn1") == pod(nodeName="vn2")
    assert pinning.pin(pod(), None) == pod()
