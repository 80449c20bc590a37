"""A refused pod has a condition with the reason."""

from hansa.kube.objects import Object
from hansa.model.translation.common.pod import unschedulable

REFUSED = {"type": "PodScheduled", "status": "False", "reason": "Refused", "message": "it is too big"}


def pod(*conditions: dict[str, str]) -> Object:
    return Object.of({"metadata": {"name": "web", "namespace": "shop"}, "status": {"conditions": list(conditions)}})


def test_a_refusal_replaces_the_pod_scheduled_condition_and_no_other() -> None:
    gate = {"type": "gate/a", "status": "True"}
    [part] = unschedulable.unscheduled(
        pod(gate, {"type": "PodScheduled", "status": "False", "reason": "other"}), "it is too big"
    )
    assert part.subresource == "status"
    assert part.patch == {"status": {"conditions": [gate, REFUSED]}}


def test_a_refusal_that_is_already_reported_is_not_patched_again() -> None:
    assert (
        list(unschedulable.unscheduled(pod(REFUSED | {"lastTransitionTime": "2026-01-01T00:00:00Z"}), "it is too big"))
        == []
    )
    assert len(list(unschedulable.unscheduled(pod(REFUSED), "it is bigger"))) == 1
    [part] = unschedulable.unscheduled(pod(), "x" * 5000)
    assert len(part.patch["status"]["conditions"][0]["message"]) == unschedulable.MAX_MESSAGE
