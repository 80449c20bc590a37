"""Claims of tenants: which volumes and classes of the super cluster they may have."""

from typing import Any

import pytest

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.pair import Link
from hansa.model.translation.tenant.tenant_settings import Allowance
from tenants import KEY, LINK, a_link, a_pod, an_object, desired, refusal

CLAIMS = resources.PERSISTENT_VOLUME_CLAIMS
OFFERED = an_object("StorageClass", "fast", labels={keys.SUPER_PUBLIC: "true"})


def a_claim(**spec: Any) -> Object:
    return an_object("PersistentVolumeClaim", "data", "shop", spec=spec)


def a_volume(**bound: str) -> Object:
    return an_object("PersistentVolume", "v1", spec={"claimRef": bound} if bound else {})


def refused(link: Link = LINK, **spec: Any) -> str:
    return refusal(a_claim(**spec), link, CLAIMS)


def test_a_claim_names_only_classes_that_the_super_cluster_offers() -> None:
    assert refused(a_link(below=[OFFERED]), storageClassName="fast") == ""
    assert refused(storageClassName="fast").startswith("spec.storageClassName: StorageClass fast is not offered to")
    assert refused(storageClassName="") == ""


def test_a_claim_without_a_class_does_not_get_the_default_of_the_super_cluster() -> None:
    assert refused() == (
        "spec.storageClassName is not set and the tenant has no default StorageClass; name one that 'kubectl get"
        ' storageclasses\' lists, or "" for a volume that an administrator made for the claim'
    )


@pytest.mark.parametrize(
    "volume",
    [
        None,
        a_volume(),
        a_volume(namespace="other-shop", name="data", uid="1"),
        a_volume(namespace=f"{KEY}-shop", name="others", uid="1"),
    ],
)
def test_a_claim_never_names_a_volume_that_is_not_for_it(volume: Object | None) -> None:
    link = a_link(below=[OFFERED, *([] if volume is None else [volume])])
    assert refused(link, volumeName="v1", storageClassName="fast") == (
        "spec.volumeName: v1 is not a PersistentVolume for this claim; remove it, or have the administrator of the"
        f" super cluster set spec.claimRef of the volume to {KEY}-shop/data"
    ), "the message does not tell whether the volume exists"


def test_a_claim_keeps_the_volume_that_is_bound_to_it_also_when_its_class_is_no_longer_offered() -> None:
    link = a_link(below=[a_volume(namespace=f"{KEY}-shop", name="data", uid="1")])
    assert refused(link, volumeName="v1", storageClassName="fast") == refused(link, volumeName="v1") == ""


def test_without_a_class_only_volumes_for_the_tenant_match() -> None:
    own = {"matchLabels": {"disk": "fast", keys.TENANT_CLUSTER: "another"}, "matchExpressions": []}
    lower = desired(a_claim(storageClassName="", selector=own), resource=CLAIMS).spec["selector"]
    assert lower == {"matchLabels": {"disk": "fast", keys.TENANT_CLUSTER: KEY}, "matchExpressions": []}
    assert desired(a_claim(storageClassName=""), resource=CLAIMS).spec["selector"] == {
        "matchLabels": {keys.TENANT_CLUSTER: KEY}
    }
    assert "selector" not in desired(a_claim(storageClassName="fast"), resource=CLAIMS).spec


def test_a_copy_has_no_class_but_that_of_its_field_and_no_field_that_is_unknown() -> None:
    old = {"volume.beta.kubernetes.io/storage-class": "secret"}
    claim = a_claim(storageClassName="fast", newField=1).with_metadata(annotations=old)
    lists = LINK.settings.lists.__class__(synced_annotations=frozenset(old))
    lower = desired(claim, a_link(lists=lists), CLAIMS)
    assert lower.spec == {"storageClassName": "fast"}
    assert not old.keys() & lower.annotations.keys()


@pytest.mark.parametrize(
    "source",
    [{"kind": "VolumeSnapshot", "apiGroup": "snapshot.storage.k8s.io", "name": "s"}, {"kind": "Own", "name": "s"}],
)
def test_a_claim_is_filled_only_from_a_claim(source: dict[str, str]) -> None:
    link = a_link(below=[OFFERED])
    for field in ("dataSource", "dataSourceRef"):
        message = refused(link, storageClassName="fast", **{field: source})
        assert message.startswith(f"spec.{field}.kind: {source['kind']} is not allowed for tenants; use a Persistent")
    claim = {"kind": "PersistentVolumeClaim", "name": "old"}
    assert refused(link, storageClassName="fast", dataSource=claim, dataSourceRef=claim) == ""


def test_volume_attributes_classes_may_be_named_where_that_is_allowed() -> None:
    spec = {"storageClassName": "fast", "volumeAttributesClassName": "gold"}
    assert refused(a_link(below=[OFFERED]), **spec).startswith("spec.volumeAttributesClassName: gold is not allowed")
    allowed = frozenset({Allowance.VOLUME_ATTRIBUTES_CLASSES})
    assert refused(a_link(below=[OFFERED], allowed=allowed), **spec) == ""


def test_the_claims_of_ephemeral_volumes_are_checked_with_their_pod() -> None:
    def pod(**spec: Any) -> Object:
        template = {"volumeClaimTemplate": {"spec": spec}}
        return a_pod({"volumes": [{"name": "scratch", "ephemeral": template}]})

    path = "spec.volumes[scratch].ephemeral.volumeClaimTemplate.spec"
    assert refusal(pod(storageClassName="fast")).startswith(
        f"{path}.storageClassName: StorageClass fast is not offered"
    )
    assert refusal(pod(storageClassName="fast"), a_link(below=[OFFERED])) == ""
    assert f"claimRef of the volume to {KEY}-shop/web-scratch" in refusal(pod(volumeName="v1"))
