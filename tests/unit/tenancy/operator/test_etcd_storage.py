"""The storage of etcd: claims by default, and never another one for a StatefulSet that exists."""

import copy

import pytest

from hansa.kube.objects import Object
from hansa.tenancy.operator import cluster_versions, etcd_storage
from hansa.tenancy.operator.etcd_storage import EtcdStorage, Medium

EMPTY_DIR = EtcdStorage(Medium.EMPTY_DIR)


@pytest.fixture
def spec():
    return cluster_versions.samples()[0].spec["etcd"]["statefulset"]["spec"]


def volume(spec):
    return next((one for one in spec["template"]["spec"]["volumes"] if one["name"] == "data"), None)


def claims(spec):
    return [one["metadata"]["name"] for one in spec.get("volumeClaimTemplates", ())]


def live(spec):
    return Object.of({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "etcd"}, "spec": spec})


def test_the_sample_keeps_data_in_a_claim_and_rolls_out_changes(spec):
    made = etcd_storage.DEFAULT.apply(spec, None)
    assert (claims(made), volume(made), made["updateStrategy"]["type"]) == (["data"], None, "RollingUpdate")
    assert made == spec


def test_a_class_is_that_of_claims_that_name_none(spec):
    [claim] = EtcdStorage(storage_class="fast").apply(spec, None)["volumeClaimTemplates"]
    assert claim["spec"]["storageClassName"] == "fast"
    [claim] = EtcdStorage(storage_class="slow").apply({**spec, "volumeClaimTemplates": [claim]}, None)[
        "volumeClaimTemplates"
    ]
    assert claim["spec"]["storageClassName"] == "fast"


def test_an_empty_dir_in_place_of_the_claim_is_never_rolled_out(spec):
    before = copy.deepcopy(spec)
    made = EMPTY_DIR.apply(spec, None)
    assert (claims(made), volume(made)) == ([], {"name": "data", "emptyDir": {}})
    assert made["updateStrategy"] == {"type": "OnDelete"}
    assert spec == before


def test_an_existing_etcd_keeps_its_empty_dir(spec):
    former = EMPTY_DIR.apply(spec, None)
    former["template"]["spec"]["volumes"][-1]["emptyDir"] = {"medium": "Memory"}
    made = etcd_storage.DEFAULT.apply(spec, live(former))
    assert (claims(made), volume(made)) == ([], {"name": "data", "emptyDir": {"medium": "Memory"}})
    assert made["updateStrategy"] == {"type": "OnDelete"}


def test_an_existing_etcd_keeps_its_claims(spec):
    former = copy.deepcopy(spec)
    former["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"] = "1Gi"
    for storage, wanted in (
        (etcd_storage.DEFAULT, spec),
        (EMPTY_DIR, spec),
        (etcd_storage.DEFAULT, EMPTY_DIR.apply(spec, None)),
    ):
        made = storage.apply(wanted, live(former))
        assert (made["volumeClaimTemplates"], volume(made)) == (former["volumeClaimTemplates"], None)
