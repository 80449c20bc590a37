"""An exported Service as a ServiceImport, slices and a derived Service."""

from typing import Any

from golden_files import merged
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.pair import Link
from hansa.model.translation.common import services
from hansa.model.translation.federation import exports

EXPORT = Object.of({"kind": "ServiceExport", "metadata": {"namespace": "shop", "name": "web", "uid": "e1"}})


def a_service(**spec: Any) -> Object:
    ports = [{"name": "http", "port": 80, "targetPort": 8080, "nodePort": 30080, "protocol": "TCP"}]
    metadata = {"namespace": "shop", "name": "web", "uid": "s1"}
    return Object.of({"kind": "Service", "metadata": metadata, "spec": {"ports": ports, **spec}})


def test_a_service_that_cannot_be_exported_says_why() -> None:
    assert exports.problem(None)[0] == "NoService"
    assert exports.problem(a_service(type="ExternalName"))[0] == "InvalidServiceType"
    assert exports.problem(a_service()) == ("", "")


def test_the_import_has_the_ports_and_the_type_of_the_service() -> None:
    made = exports.service_import(a_service(sessionAffinity="ClientIP"), EXPORT)
    ports = [{"name": "http", "port": 80, "protocol": "TCP"}]
    assert made.spec == {"type": "ClusterSetIP", "ports": ports, "sessionAffinity": "ClientIP"}
    assert [owner.uid for owner in made.metadata.owner_references] == ["e1"]
    assert exports.service_import(a_service(clusterIP="None"), EXPORT).spec["type"] == "Headless"
    assert services.is_ours(made)


def test_each_cluster_keeps_the_addresses_of_its_own_derived_service() -> None:
    imported = exports.service_import(a_service(), EXPORT)
    derived = exports.derived_service(imported)
    assert "selector" not in derived.spec
    address = derived.with_fields(spec={**derived.spec, "clusterIPs": ["10.0.0.9"]})
    patch = exports.import_addresses(imported, address)
    here = Object.of(merged(imported.to_dict(), patch))
    assert here.spec["ips"] == ["10.0.0.9"]
    assert exports.import_addresses(here, address) == {}
    assert list(exports.import_patches(here, imported)) == []
    assert "ips" not in exports.without_addresses(here, Link("", "", "")).spec
    headless = exports.derived_service(exports.service_import(a_service(clusterIP="None"), EXPORT))
    assert headless.spec["clusterIP"] == "None"


def test_exported_slices_belong_to_the_derived_service() -> None:
    endpoint = {"addresses": ["10.1.0.1"], "conditions": {"ready": True}, "nodeName": "n", "targetRef": {"name": "p"}}
    metadata = {"namespace": "shop", "name": "web-x7k2p", "uid": "x", "labels": {keys.SERVICE_NAME: "web"}}
    fields = {"addressType": "IPv4", "endpoints": [endpoint], "ports": [{"port": 8080}]}
    one = Object.of({"kind": "EndpointSlice", "metadata": metadata, **fields})
    made = exports.exported_slice(one, EXPORT, "hamburg")
    assert made.get("endpoints") == [{"addresses": ["10.1.0.1"], "conditions": {"ready": True}}]
    assert made.labels[keys.SERVICE_NAME] == exports.derived_name(EXPORT.key)
    assert (made.labels[keys.EXPORTED_SERVICE], made.labels[keys.EXPORTING_CLUSTER]) == ("web", "hamburg")
    assert list(exports.slice_patches(made, made)) == []
    empty = exports.exported_slice(one.with_fields(endpoints=None), EXPORT, "hamburg")
    assert [part.patch for part in exports.slice_patches(made, empty)] == [{"endpoints": []}]


def test_a_derived_service_is_that_of_this_import_and_of_nobody_else() -> None:
    """Neither a user's, nor one of a source that is copied here, nor one of an import that is gone, is patched."""
    imported = exports.service_import(a_service(), EXPORT).with_metadata(uid="i1")
    derived = exports.derived_service(imported)
    assert exports.taken_service(imported, derived) == exports.taken_service(imported, None) == ""
    copy = derived.with_metadata(labels={**derived.labels, keys.UPPER: "other"}, owner_references=())
    of_a_user = derived.with_metadata(labels={})
    for one in (copy, of_a_user, exports.derived_service(imported.with_metadata(uid="i0"))):
        assert f"a Service {derived.name} exists" in exports.taken_service(imported, one)
    assert exports.taken_service(None, of_a_user)
    assert not services.is_ours(a_service().with_metadata(labels={keys.UPPER: "other"}))


def test_an_import_of_another_export_is_reported_as_a_conflict() -> None:
    imported = exports.service_import(a_service(), EXPORT)
    assert exports.conflict(exports.taken_import(EXPORT, imported)) == ("Conflict", False, "NoConflict", "")
    kind, is_true, reason, message = exports.conflict(exports.taken_import(EXPORT.with_metadata(uid="e2"), imported))
    assert (kind, is_true, reason) == ("Conflict", True, "NameTaken")
    assert "a ServiceImport of this name exists" in message


def test_the_time_of_a_condition_is_that_of_its_last_change() -> None:
    first = exports.conditions([], [("Valid", False, "NoService", "none")], now="1", generation=1)
    same = exports.conditions(first, [("Valid", False, "NoService", "none")], now="2", generation=1)
    assert same == first
    [valid] = exports.conditions(first, [("Valid", True, "", "")], now="3", generation=1)
    assert (valid["status"], valid["reason"], valid["lastTransitionTime"]) == ("True", "Valid", "3")
