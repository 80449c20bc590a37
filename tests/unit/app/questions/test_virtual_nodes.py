"""A pod of a manifest is explained as the webhook would create it."""

import json

from hansa.app.questions import virtual_nodes
from hansa.kube.objects import Object
from hansa.model import keys


def a_new_pod(namespace="shop", **selector):
    metadata = {"name": "new", "namespace": namespace}
    return Object.of({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"nodeSelector": selector}})


def test_constraints_on_lower_nodes_are_parked_and_those_on_virtual_nodes_stay():
    hostname = {"kubernetes.io/hostname": "lower-1"}
    admitted = virtual_nodes.as_admitted(a_new_pod(clusterID="small", disk="ssd", **hostname), {"vn-small"})
    assert admitted.spec["nodeSelector"] == {"clusterID": "small"}
    parked = json.loads(admitted.annotations[keys.CLUSTER_SELECTOR])
    assert parked == {"nodeSelector": {"disk": "ssd"} | hostname}


def test_a_pod_that_the_webhook_leaves_as_it_is_is_explained_as_it_is():
    pod = a_new_pod("kube-system", disk="ssd")
    assert virtual_nodes.as_admitted(pod, ()) == pod
