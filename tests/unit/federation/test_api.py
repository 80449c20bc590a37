"""Targets as typed values: what a schema can't refuse is refused here, with a reason."""

from typing import Any

import pytest

from hansa.federation import api
from hansa.kube.objects import Object


def a_target(**spec: Any) -> Object:
    """A Target with this spec."""
    metadata = {"name": "c2", "namespace": "default"}
    return Object.of({"apiVersion": "multicluster.admiralty.io/v1alpha1", "metadata": metadata, "spec": spec})


def test_labels_are_excluded_by_key_and_value() -> None:
    target = api.target(a_target(self=True, excludedLabelsRegexp=r"^role=|\.example\.com/"))
    assert target.is_excluded("role", "worker")
    assert target.is_excluded("a.example.com/zone", "1")
    assert not target.is_excluded("zone", "1")


@pytest.mark.parametrize("pattern", ["[", "(a+)+$"])
def test_an_expression_that_is_invalid_or_slow_is_refused(pattern: str) -> None:
    with pytest.raises(api.BadObject, match="excludedLabelsRegexp"):
        api.target(a_target(self=True, excludedLabelsRegexp=pattern))
