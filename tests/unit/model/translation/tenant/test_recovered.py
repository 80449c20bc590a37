"""The way back from a copy to a tenant's object: for each golden copy, no more and no less than what it carried."""

import pytest
import yaml

import golden_files
from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model import keys, stamp
from hansa.model.translation.tenant import recovered

KINDS = {resource.kind.lower(): resource for resource in recovered.FIELDS}
GENERATED = {
    "configmap/of-services",  # computed by Hansa
    "configmap/of-the-api-server",
    "configmap/root-ca",  # made by the tenant's controllers
    "secret/of-a-service-account",  # a token of the lost control plane
}
CASES = sorted(path for kind in KINDS for path in (golden_files.ROOT / "virtualcluster" / kind).iterdir())


def loaded(path):
    return Object.of(yaml.load(path.read_text(), golden_files.LOADER))


@pytest.mark.parametrize("case", CASES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_is_recovered_from_a_copy_was_in_the_tenants_object(case):
    upper, copy = loaded(case / "upper.yaml"), loaded(case / "lower.yaml")
    found = recovered.upper_of(copy, KINDS[case.parent.name])
    if f"{case.parent.name}/{case.name}" in GENERATED:
        assert found is None
        return
    assert found.key == upper.key
    assert found.labels.items() <= upper.labels.items()
    assert found.annotations.items() <= upper.annotations.items()
    lost = set(upper.labels) - set(found.labels)
    assert lost <= {key for key in lost if key.startswith(("secret.example.com", "told.example.com"))}
    for field in ("data", "binaryData", "type", "immutable"):
        assert found.get(field) == upper.get(field), field
    assert found.spec.items() <= upper.spec.items()


def test_a_namespaces_labels_get_their_domain_back():
    prefix = f"{keys.NAMESPACE_LABEL}/"
    labels = {f"{prefix}app.kubernetes.io_part-of": "shop", f"{prefix}team_a": "x", keys.UPPER: "id"}
    annotations = {keys.UPPER_UID: "u", keys.UPPER_NAME: "/app"}
    copy = Object.of({"metadata": {"name": "t-app", "labels": labels, "annotations": annotations}})
    found = recovered.upper_of(copy, resources.NAMESPACES)
    assert found.labels == {"app.kubernetes.io/part-of": "shop", "team_a": "x"}


def test_a_placeholder_belongs_to_no_object():
    origin = stamp.Origin("id", recovered.NO_UID, "app", "maybe")
    copy = stamp.put(Object.of({"metadata": {"name": "maybe", "namespace": "t-app"}}), origin)
    assert recovered.upper_of(copy, resources.CONFIG_MAPS) is None


def test_a_copy_is_adopted_once():
    origin = stamp.Origin("old", "former", "app", "config")
    copy = stamp.put(Object.of({"metadata": {"name": "config", "namespace": "t-app", "uid": "lower"}}), origin)
    upper = Object.of({"metadata": {"name": "config", "namespace": "app", "uid": "now"}})
    patch = recovered.adoption(copy, upper, "new")
    assert patch["metadata"]["uid"] == "lower"
    assert patch["metadata"]["labels"] == {keys.UPPER: "new"}
    adopted = stamp.put(copy, stamp.Origin("new", "now", "app", "config"))
    assert recovered.adoption(adopted, upper, "new") == {}


def test_a_copy_is_handed_over_once_and_stays_that_of_its_former_object():
    origin = stamp.Origin("old", "former", "app", "budget")
    copy = stamp.put(Object.of({"metadata": {"name": "budget", "namespace": "t-app", "uid": "lower"}}), origin)
    assert recovered.handover(copy, "new")["metadata"] == {
        "uid": "lower",
        "resourceVersion": copy.version,
        "labels": {keys.UPPER: "new"},
        "annotations": {},
    }
    assert recovered.handover(stamp.put(copy, stamp.Origin("new", "former", "app", "budget")), "new") == {}
