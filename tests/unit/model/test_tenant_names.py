"""Names that tenants have in the super cluster: the reference's vectors, and what holds for all."""

import re

from hypothesis import given
from hypothesis import strategies as st

from hansa.model import tenant_names

UID = "d64ea0c0-91f8-46f5-8643-c0cab32ab0cd"
LABEL = st.text("ab-9", max_size=61).map(lambda middle: f"a{middle}z")
KEY = "default-fd1b34-vc-sample-1"


def test_a_root_namespace_is_the_vc_with_a_digest_of_its_uid() -> None:
    assert tenant_names.root_namespace("ns", "name", uid=UID) == "ns-fd1b34-name"


def test_a_super_namespace_is_the_key_and_the_tenants_name_for_it() -> None:
    assert tenant_names.super_namespace(KEY, "kube-system") == "default-fd1b34-vc-sample-1-kube-system"
    assert tenant_names.super_namespace("k" * 31, "n" * 31) == "k" * 31 + "-" + "n" * 31


def test_a_name_that_is_too_long_ends_in_a_digest_of_the_whole() -> None:
    lower = tenant_names.super_namespace(KEY, "a-very-long-tenant-namespace-name-that-overflows-63")
    assert lower == "default-fd1b34-vc-sample-1-a-very-long-tenant-namespace-n-bb3f1"


@given(LABEL, LABEL)
def test_every_namespace_of_a_tenant_has_a_name_that_a_namespace_may_have(key: str, namespace: str) -> None:
    lower = tenant_names.super_namespace(key, namespace)
    assert len(lower) <= tenant_names.LONGEST
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", lower)
    assert lower.startswith(f"{key}-"[: tenant_names.LONGEST - 6])


@given(LABEL, LABEL, LABEL)
def test_two_namespaces_of_a_tenant_stay_two(key: str, one: str, other: str) -> None:
    assert (tenant_names.super_namespace(key, one) == tenant_names.super_namespace(key, other)) == (one == other)


@given(LABEL, LABEL, st.uuids(), st.uuids())
def test_a_vc_that_was_made_again_has_another_root_namespace(namespace: str, name: str, one: str, other: str) -> None:
    before, after = (tenant_names.root_namespace(namespace, name, uid=str(uid)) for uid in (one, other))
    assert len(before) <= tenant_names.LONGEST
    assert (before == after) == (one == other)
