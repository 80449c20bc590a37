"""Translations of Services whose reason a golden file cannot show."""

from dataclasses import replace
from typing import Any

import pytest

from golden_files import LINK
from hansa.kube.objects import Object
from hansa.model.translation.common import services

DUAL = {"ipFamilies": ["IPv6", "IPv4"], "ipFamilyPolicy": "RequireDualStack"}
SIX = {"ipFamilies": ["IPv6"], "ipFamilyPolicy": "SingleStack"}


def below(spec: dict[str, Any], *families: str) -> dict[str, Any]:
    link = replace(LINK, settings=replace(LINK.settings, ip_families=families))
    return services.service(Object.of({"metadata": {"name": "s"}, "spec": spec}), link).spec


@pytest.mark.parametrize(
    ("above", "has", "families", "policy"),
    [
        (DUAL, (), None, "PreferDualStack"),
        (DUAL, ("IPv4",), ["IPv4"], "PreferDualStack"),
        (DUAL, ("IPv4", "IPv6"), ["IPv6", "IPv4"], "PreferDualStack"),
        (SIX, ("IPv4",), None, "SingleStack"),
        (SIX, ("IPv4", "IPv6"), ["IPv6"], "SingleStack"),
    ],
)
def test_address_families_are_kept_as_far_as_the_lower_cluster_has_them(
    above: dict[str, Any], has: tuple[str, ...], families: list[str] | None, policy: str
) -> None:
    spec = below(above, *has)
    assert (spec.get("ipFamilies"), spec["ipFamilyPolicy"]) == (families, policy)


def test_fields_allocated_by_the_lower_cluster_are_no_difference() -> None:
    spec = {"type": "NodePort", "ports": [{"port": 80}], "selector": {"a": "b"}}
    wanted = Object.of({"metadata": {"name": "s"}, "spec": below(spec)})
    allotted = {
        "clusterIP": "10.0.0.1",
        "clusterIPs": ["10.0.0.1"],
        "ipFamilies": ["IPv4"],
        "ports": [{"port": 80, "nodePort": 30000}],
    }
    lower = wanted.with_fields(spec=wanted.spec | allotted | {"internalTrafficPolicy": "Cluster"})
    assert list(services.service_patches(lower, wanted)) == []
