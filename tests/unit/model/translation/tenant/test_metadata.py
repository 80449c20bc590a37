"""Labels and annotations that are synced down and up, and the owner of a copy."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansa.kube import resources
from hansa.kube.language import selectors
from hansa.model import keys
from hansa.model.translation.tenant import metadata, namespaces, opaque_labels
from hansa.model.translation.tenant.tenant_lists import TenantLists
from tenants import KEY, LINK, a_link, a_pod, a_service, an_object, desired, upper_patches

TENANT = LINK.settings


@pytest.mark.parametrize(
    "label",
    [
        "app",
        "app.kubernetes.io/name",
        "statefulset.kubernetes.io/pod-name",
        "apps.kubernetes.io/pod-index",
        "batch.kubernetes.io/job-name",
        "controller-revision-hash",
    ],
)
def test_what_a_tenants_service_selects_is_on_the_lower_pod(label: str) -> None:
    pod = desired(a_pod(labels={label: "a"}))
    service = desired(a_service("web", selector={label: "a"}), resource=resources.SERVICES)
    assert service.spec["selector"].items() <= pod.labels.items()


@pytest.mark.parametrize(
    ("key", "is_label_kept", "is_annotation_kept"),
    [
        ("example.com/a", True, False),
        ("plain", True, False),
        ("x.kubernetes.io/a", True, False),
        ("kubectl.kubernetes.io/default-container", True, True),
        ("k8s.v1.cni.cncf.io/networks", True, False),
        ("iam.amazonaws.com/role", True, False),
        ("tenancy.x-k8s.io/cluster", False, False),
        ("transparency.tenancy.x-k8s.io/clusterIP", False, False),
        ("scheduler.tenancy.x-k8s.io/placements", True, True),
        ("scheduler.virtualcluster.io/slice", True, True),
        ("secret.example.com/plan", False, False),
        ("told.example.com/zone", False, False),
        ("kubectl.kubernetes.io/last-applied-configuration", True, False),
        ("topology.kubernetes.io/zone", False, False),
        ("sidecar.istio.io/inject", False, False),
        ("io.cilium.k8s.policy.serviceaccount", False, False),
        ("aadpodidbinding", False, False),
        (keys.LOWER_UID, False, False),
    ],
)
def test_the_default_lists(key: str, is_label_kept: bool, is_annotation_kept: bool) -> None:
    lower = desired(a_pod(labels={key: "mine"}, annotations={key: "mine"}))
    assert (lower.labels.get(key) == "mine", lower.annotations.get(key) == "mine") == (
        is_label_kept,
        is_annotation_kept,
    )


@pytest.mark.parametrize(
    ("pattern", "key", "is_kept"),
    [
        ("example.com/a", "example.com/a", True),
        ("example.com/a", "example.com/ab", False),
        ("example.com/*", "example.com/ab", True),
        ("Pod:example.com/a", "example.com/a", True),
        ("Service:example.com/a", "example.com/a", False),
        ("*", "example.com/a", True),
        ("*", "plain", True),
        ("*", "x.kubernetes.io/a", False),  # an opaque domain
        ("*", "kubernetes.io", True),  # no domain, only a name
        ("x.kubernetes.io/*", "x.kubernetes.io/a", True),
        ("secret.example.com/*", "secret.example.com/plan", False),  # the VirtualCluster's spec takes precedence
        ("*", "told.example.com/zone", False),
        ("*", "tenancy.x-k8s.io/cluster", False),
    ],
)
def test_an_annotation_is_synced_if_a_pattern_matches(pattern: str, key: str, is_kept: bool) -> None:
    link = a_link(lists=TenantLists(synced_annotations=frozenset({pattern})))
    assert (desired(a_pod(annotations={key: "mine"}), link).annotations.get(key) == "mine") is is_kept


def test_a_pattern_is_for_namespaces_only_if_it_names_them() -> None:
    upper = an_object("Namespace", "shop").with_metadata(annotations={"a.io/x": "1", "b.io/x": "1"})
    link = a_link(lists=TenantLists(synced_annotations=frozenset({"a.io/x", "*", "Namespace:b.io/*"})))
    lower = desired(upper, link, resource=resources.NAMESPACES)
    assert ("a.io/x" in lower.annotations, "b.io/x" in lower.annotations) == (False, True)


def test_opaque_labels_are_a_setting() -> None:
    lower = desired(
        a_pod(labels={"istio.io/rev": "a", "mine.io/x": "b"}), a_link(opaque_labels=frozenset({"mine.io/*"}))
    )
    assert ("istio.io/rev" in lower.labels, "mine.io/x" in lower.labels) == (True, False)


def test_the_documentation_has_each_opaque_label_with_its_reason() -> None:
    page = (Path(__file__).parents[5] / "docs" / "security.md").read_text()
    for reason, patterns in opaque_labels.REASONS.items():
        assert f"| {', '.join(f'`{one}`' for one in patterns)} | {reason} |" in page


def test_the_domains_are_a_setting() -> None:
    everything = TenantLists(synced_annotations=frozenset({"*"}))
    pod = a_pod(annotations={"x.kubernetes.io/a": "1", "x.example.com/a": "1"})
    lower = desired(pod, a_link(lists=everything, opaque_domains=("example.com",)))
    assert ("x.kubernetes.io/a" in lower.annotations, "x.example.com/a" in lower.annotations) == (True, False)
    assert "x.kubernetes.io/a" in desired(pod, a_link(lists=everything, opaque_domains=())).annotations


def test_a_copy_has_the_owner_labels_and_annotations_of_the_reference() -> None:
    lower = desired(a_pod(labels={keys.VC_NAME: "forged"}, annotations={keys.TENANT_CLUSTER: "forged"}))
    assert {name: lower.annotations[name] for name in lower.annotations if name.startswith(keys.TENANCY)} == {
        "tenancy.x-k8s.io/cluster": KEY,
        "tenancy.x-k8s.io/uid": "upper-uid",
        "tenancy.x-k8s.io/namespace": "shop",
        "tenancy.x-k8s.io/ownerReferences": "null",
        "tenancy.x-k8s.io/vcname": "vc-sample-1",
        "tenancy.x-k8s.io/vcnamespace": "default",
    }
    assert {name: lower.labels[name] for name in lower.labels if name.startswith(keys.TENANCY)} == {
        "tenancy.x-k8s.io/cluster": KEY,
        "tenancy.x-k8s.io/vcname": "vc-sample-1",
        "tenancy.x-k8s.io/vcnamespace": "default",
    }
    assert not lower.metadata.owner_references


def test_a_name_that_is_too_long_for_a_label_is_cut_there() -> None:
    lower = desired(a_pod(), a_link(name="n" * 100))
    assert len(lower.labels[keys.VC_NAME]) == 63
    assert lower.annotations[keys.VC_NAME] == "n" * 100


def test_labels_and_annotations_synced_up_are_added_and_never_removed() -> None:
    upper = a_pod(labels={"told.example.com/old": "1"}, annotations={"told.example.com/zone": "south"})
    lower = desired(upper).with_metadata(
        labels={"told.example.com/rack": "7", "example.com/other": "1"},
        annotations={"told.example.com/zone": "north", "transparency.tenancy.x-k8s.io/x": "y"},
    )
    [part] = upper_patches(upper, lower)
    assert part.patch == {
        "metadata": {
            "labels": {"told.example.com/rack": "7"},
            "annotations": {"told.example.com/zone": "north", "transparency.tenancy.x-k8s.io/x": "y"},
        }
    }


def test_labels_and_annotations_synced_up_are_not_synced_down_again() -> None:
    lower = desired(a_pod(labels={"told.example.com/rack": "6"}, annotations={"told.example.com/zone": "south"}))
    assert not [key for key in (*lower.labels, *lower.annotations) if key.startswith("told.")]


TABLES = st.dictionaries(
    st.sampled_from(["a", "x.kubernetes.io/b", "tenancy.x-k8s.io/c", "told.example.com/d"]), st.text("ab", max_size=2)
)


@given(TABLES, TABLES)
def test_no_key_is_owned_by_both_sides(labels: dict[str, str], annotations: dict[str, str]) -> None:
    upper = a_pod(labels=labels, annotations=annotations)
    lower = desired(upper)
    assert list(metadata.transparent_patches(upper, lower, LINK)) == []


def test_labels_of_namespaces_mean_nothing_to_the_super_clusters_policies() -> None:
    labels = {"pod-security.kubernetes.io/enforce": "privileged", "istio-injection": "disabled", "n" * 63: "long"}
    upper = an_object("Namespace", "shop", labels=labels | {"kubernetes.io/metadata.name": "shop"})
    lower = desired(upper, resource=resources.NAMESPACES)
    assert lower.labels[keys.POD_SECURITY_ENFORCED] == "baseline", "the tenant's own label has no effect"
    others = {key.partition("/")[0] for key in lower.labels.keys() - {keys.POD_SECURITY_ENFORCED}}
    assert others == {"namespace.tenancy.x-k8s.io", "hansa.dev"}
    assert all(len(key.partition("/")[2]) <= 63 for key in lower.labels)
    assert lower.name == f"{KEY}-shop"
    assert lower.annotations[keys.VC_UID] == TENANT.uid


LABELS = st.dictionaries(
    st.sampled_from(["team", "kubernetes.io/metadata.name", "x.io/" + "y" * 63]), st.text("ab", min_size=1, max_size=1)
)


@given(LABELS, LABELS, st.lists(st.sampled_from(["Exists", "DoesNotExist"]), max_size=2))
def test_a_namespace_selector_matches_the_same_namespaces_in_both_clusters(
    asked: dict[str, str], there: dict[str, str], operators: list[str]
) -> None:
    expressions = [{"key": "team", "operator": operator} for operator in operators]
    selector = {"matchLabels": asked, "matchExpressions": expressions}
    above = an_object("Namespace", "shop", labels=there)
    below = desired(above, resource=resources.NAMESPACES)
    assert meets(namespaces.selector(selector, LINK), dict(below.labels)) == meets(selector, there)
    foreign = dict(below.labels) | {keys.UPPER: "another tenant"}
    assert not meets(namespaces.selector(selector, LINK), foreign)


def meets(selector: dict[str, object], labels: dict[str, str]) -> bool:
    return selectors.of_object(selector).matches(labels)
