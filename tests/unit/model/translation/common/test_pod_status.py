"""Fields of a lower pod that are synced up, and fields that are not."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from translating import a_pod, created, patched, upper_patches

WHEN = "2026-05-01T10:00:00Z"
TYPES = ["PodScheduled", "Initialized", "Ready", "ContainersReady", "PodResizeInProgress", "example.com/gate"]
CONDITIONS = st.lists(
    st.fixed_dictionaries(
        {"type": st.sampled_from(TYPES), "status": st.sampled_from(["True", "False"])},
        optional={"observedGeneration": st.just(1), "reason": st.just("Because")},
    ),
    unique_by=lambda one: one["type"],
)
STATUSES = st.fixed_dictionaries(
    {"phase": st.sampled_from(["Pending", "Running", "Succeeded"])},
    optional={
        "conditions": CONDITIONS,
        "podIP": st.just("10.0.0.1"),
        "reason": st.just("Evicted"),
        "containerStatuses": st.just([{"name": "main", "ready": True}]),
        "qosClass": st.sampled_from(["Burstable", "BestEffort"]),
        "nominatedNodeName": st.just("worker-1"),
        "observedGeneration": st.sampled_from([1, 2]),
    },
)
GATES = {"readinessGates": [{"conditionType": "example.com/gate"}]}


@settings(deadline=None)
@given(STATUSES, STATUSES, st.sampled_from([{}, GATES]))
def test_one_write_is_enough(before: dict[str, Any], reported: dict[str, Any], spec: dict[str, Any]) -> None:
    upper = a_pod(spec, before)
    lower = created(upper, reported)
    parts = upper_patches(upper, lower)
    assert len(parts) <= 1
    assert upper_patches(patched(upper, parts), lower) == []


@settings(deadline=None)
@given(STATUSES, STATUSES)
def test_the_upper_cluster_keeps_what_is_its_own(before: dict[str, Any], reported: dict[str, Any]) -> None:
    upper = a_pod(status=before)
    after = patched(upper, upper_patches(upper, created(upper, reported)))
    for field in ("qosClass", "nominatedNodeName", "observedGeneration"):
        assert after.status.get(field) == before.get(field)
    assert after.spec == upper.spec
    assert after.with_metadata(annotations={}).metadata == upper.metadata


def test_the_patch_also_records_the_uid_of_the_lower_pod() -> None:
    upper = a_pod(status={"phase": "Pending"})
    [part] = upper_patches(upper, created(upper, {"phase": "Running"}))
    assert part.subresource == "status"
    assert part.patch == {
        "metadata": {"annotations": {"hansa.dev/lower-uid": "lower-uid"}},
        "status": {"phase": "Running"},
    }


def test_the_reason_of_an_unschedulable_lower_pod_is_synced_up() -> None:
    upper = a_pod(status={"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]})
    stuck = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    [part] = upper_patches(upper, created(upper, {"phase": "Pending", "conditions": [stuck]}))
    assert part.patch["status"] == {"conditions": [stuck]}


def test_the_upper_pod_stays_scheduled_while_the_lower_pod_has_no_conditions() -> None:
    upper = a_pod(status={"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]})
    assert upper_patches(upper, created(upper, {"phase": "Pending"})) == []


def test_the_moment_of_a_condition_is_not_worth_a_write() -> None:
    def scheduled(at: str) -> dict[str, object]:
        return {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": at}],
        }

    upper = a_pod(status=scheduled("2030-01-01T00:00:00Z"))
    assert upper_patches(upper, created(upper, scheduled("2030-01-01T00:00:05Z"))) == []


def test_a_kubelet_condition_that_is_over_is_removed_and_a_foreign_one_stays() -> None:
    mine = {"type": "example.com/mine", "status": "True"}
    upper = a_pod(status={"conditions": [{"type": "PodResizeInProgress", "status": "True"}, mine]})
    after = patched(upper, upper_patches(upper, created(upper, {"conditions": [{"type": "Ready", "status": "True"}]})))
    assert [one["type"] for one in after.status["conditions"]] == ["Ready", "example.com/mine"]


@pytest.mark.parametrize(("gate", "ready"), [(None, "False"), ("False", "False"), ("True", "True")])
def test_a_pod_is_ready_when_the_readiness_gates_of_the_upper_pod_are_true(gate: str | None, ready: str) -> None:
    conditions = [] if gate is None else [{"type": "example.com/gate", "status": gate}]
    upper = a_pod(GATES, {"conditions": conditions})
    lower = created(upper, {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": WHEN}]})
    assert "readinessGates" not in lower.spec
    after = patched(upper, upper_patches(upper, lower))
    assert {one["type"]: one["status"] for one in after.status["conditions"]}["Ready"] == ready


def test_a_finished_pod_does_not_run_again() -> None:
    upper = a_pod(status={"phase": "Failed", "reason": "NodeLost"})
    assert upper_patches(upper, created(upper, {"phase": "Running"})) == []
    assert upper_patches(upper, created(upper, {"phase": "Failed", "reason": "Evicted"})) != []
