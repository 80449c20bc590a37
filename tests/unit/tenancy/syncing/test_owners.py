"""The owner of an object in the super cluster."""

from hansa.kube.objects import Object
from hansa.tenancy.syncing import owners
from hansa.tenancy.syncing.owners import Owner


def namespace(annotations):
    return Object.of({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x", "annotations": annotations}})


def test_the_annotations_identify_the_virtual_cluster():
    owner = Owner("default-489f96-vc-1", "default", "vc-1", "u-1", "m-1")
    assert owners.of(namespace(owner.annotations())) == owner


def test_without_one_of_the_annotations_there_is_no_owner():
    words = Owner("default-489f96-vc-1", "default", "vc-1", "u-1", "m-1").annotations()
    assert [owners.of(namespace({k: v for k, v in words.items() if k != left_out})) for left_out in words] == [None] * 5
