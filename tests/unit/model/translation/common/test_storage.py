"""Translations of claims and volumes whose reason a golden file cannot show."""

from typing import Any

import pytest

from golden_files import LINK
from hansa.kube.objects import Object
from hansa.model.translation.common import storage


def claim(size: str, *, capacity: str = "", node: str = "", **more: Any) -> Object:
    spec = {"resources": {"requests": {"storage": size}}} | more
    status = {"phase": "Bound", "capacity": {"storage": capacity}} if capacity else {"phase": "Pending"}
    notes = {"volume.kubernetes.io/selected-node": node} if node else {}
    return Object.of({"metadata": {"name": "data", "annotations": notes}, "spec": spec, "status": status})


@pytest.mark.parametrize(
    ("lower", "wanted", "is_written"),
    [
        (claim("1Gi", capacity="1Gi"), "1024Mi", False),
        (claim("1Gi", capacity="1Gi"), "2Gi", True),
        (claim("3Gi", capacity="1Gi"), "2Gi", True),
        (claim("3Gi", capacity="3Gi"), "2Gi", False),
        (claim("3Gi", capacity="2Gi"), "2Gi", False),
    ],
    ids=["the same", "grows", "shrinks before it has grown", "has grown by itself", "cannot shrink to what it is"],
)
def test_a_claim_grows_and_shrinks_only_while_it_has_not_grown(lower: Object, wanted: str, is_written: bool) -> None:
    parts = list(storage.claim_patches(lower, claim(wanted)))
    assert parts == [] or [part.patch for part in parts] == [{"spec": {"resources": {"requests": {"storage": wanted}}}}]
    assert bool(parts) is is_written


def test_the_volume_attributes_class_follows_and_is_never_removed() -> None:
    [part] = storage.claim_patches(claim("1Gi", capacity="1Gi"), claim("1Gi", volumeAttributesClassName="gold"))
    assert part.patch == {"spec": {"volumeAttributesClassName": "gold"}}
    assert list(storage.claim_patches(claim("1Gi", volumeAttributesClassName="gold"), claim("1Gi"))) == []


def test_a_claim_is_not_patched_before_it_is_bound_on_both_sides() -> None:
    bound_below = claim("1Gi", capacity="1Gi", volumeName="v")
    assert list(storage.claim_up_patches_on_node(claim("1Gi"), bound_below, LINK)) == []
    assert (
        list(storage.claim_up_patches_on_node(claim("1Gi", capacity="1Gi", volumeName="v"), claim("1Gi"), LINK)) == []
    )


def test_a_claim_that_has_its_node_and_size_is_not_patched() -> None:
    upper = claim("1Gi", capacity="1Gi", node="vn1", volumeName="v")
    assert list(storage.claim_up_patches_on_node(upper, claim("1Gi", capacity="1Gi", volumeName="v"), LINK)) == []


def test_a_changed_capacity_of_a_lower_volume_is_synced_up() -> None:
    def volume(size: str) -> Object:
        return Object.of({"metadata": {"name": "v"}, "spec": {"capacity": {"storage": size}}})

    [part] = storage.volume_patches(volume("1Gi"), volume("2Gi"))
    assert part.patch == {"spec": {"capacity": {"storage": "2Gi"}}}
    assert list(storage.volume_patches(volume("1Gi"), volume("1Gi"))) == []
