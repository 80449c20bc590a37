"""VirtualClusters as typed values."""

import pytest

from hansa.kube.objects import Object
from hansa.tenancy import api


@pytest.mark.parametrize(
    ("annotations", "finalizers", "provisioner"),
    [
        ((), (), ""),
        (("tenancy.x-k8s.io/admin-kubeconfig",), (), "existing"),
        (("tenancy.x-k8s.io/secret.admin-kubeconfig",), (), "existing"),
        (("tenancy.x-k8s.io/admin-kubeconfig",), ("other", "virtualcluster.finalizer.process"), "process"),
        ((), ("virtualcluster.finalizer.existing",), "existing"),
    ],
)
def test_a_virtual_cluster_is_whose_finalizer_it_bears_else_the_one_that_suits_it(annotations, finalizers, provisioner):
    metadata = {"name": "one", "annotations": dict.fromkeys(annotations, "x"), "finalizers": finalizers}
    assert api.virtual_cluster(Object.of({"metadata": metadata, "spec": {}})).provisioner == provisioner
