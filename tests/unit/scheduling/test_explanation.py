"""Where a pod is, what its copy's cluster says, and the newest Events, as sentences."""

from hansa.kube.language import quantity
from hansa.kube.objects import Object
from hansa.scheduling import explanation, pod_request
from hansa.scheduling.counterfactual import Constraint, Remedy
from hansa.scheduling.explaining import Answer
from hansa.scheduling.explanation import Explanation
from hansa.scheduling.verdict import Refusal
from scheduling_things import a_pod

SINCE = "2026-01-05T10:00:00Z"


def a_described(*, on="", **condition):
    pod = a_pod("web", on=on).to_dict()
    pod["metadata"]["uid"] = "u"
    pod["status"]["conditions"] = [{"type": "PodScheduled", **condition}] if condition else []
    return Object.of(pod)


def test_a_pods_place_has_its_time_and_a_pending_one_the_reason():
    assert (
        explanation.placed(a_described(on="n1", lastTransitionTime=SINCE), "r1") == f"is on node n1 of r1 since {SINCE}"
    )
    assert explanation.placed(a_described(message="0/1 nodes"), "") == "is pending: 0/1 nodes"
    assert explanation.placed(a_described(), "r1") == "is pending: assigned to r1, it was not scheduled yet"
    assert explanation.placed(a_pod("new"), "") == "does not exist yet"


def test_a_copy_says_why_it_does_not_run():
    copy = a_described(message="0/2 nodes are available")
    assert explanation.copy_state(copy, "r1") == "its copy shop/web in r1 has no node: 0/2 nodes are available"
    described = a_described(on="n1").to_dict()
    described["status"]["containerStatuses"] = [
        {"state": {"waiting": {"reason": "ErrImagePull", "message": "no host"}}}
    ]
    said = explanation.copy_state(Object.of(described), "r1")
    assert said == "its copy shop/web in r1 is Pending on node n1: ErrImagePull (no host)"


def an_event(reason, message, by="kube-scheduler"):
    return Object.of({"kind": "Event", "reason": reason, "message": message, "reportingComponent": by})


def test_of_each_kind_of_event_the_newest_is_shown():
    events = [an_event("FailedScheduling", "first"), an_event("Pulled", "image"), an_event("FailedScheduling", "last")]
    lines = explanation.messages(events, times=("1", "2", "3"))
    assert lines == ("2 kube-scheduler: Pulled: image", "3 kube-scheduler: FailedScheduling: last")


def test_the_json_form_has_the_time_and_no_changes_where_none_help():
    found = Explanation(a_described(on="n1", lastTransitionTime=SINCE), "pool", (), cluster="r1").as_json()
    assert (found["since"], found["cluster"], found["node"], "changes" in found) == (SINCE, "r1", "n1", False)


def test_a_change_that_two_sides_need_is_named_once():
    one = Remedy("", {}, pod_request.of_pod(a_pod()), without=(Constraint.NODES,))
    other = Remedy("n1", {"cpu": quantity.UNIT}, one.request, without=(Constraint.NODES,))
    found = Answer("r1", refusal=Refusal("r1", ()), remedies=(one, other))
    nodes = "it had no nodeSelector and no required node affinity"
    assert found.remedy == f"would fit if {nodes} and node n1 had 1 CPU more free"
    assert len(found.as_json()["changes"]) == 2
