"""Conditions that the syncer writes on a VirtualCluster, and which of them get a Warning event."""

import datetime

import msgspec

from hansa.kube.objects import Object
from hansa.tenancy.api import ConditionState
from hansa.tenancy.syncing import conditions

NOW = datetime.datetime(2030, 1, 1, 12, 0, tzinfo=datetime.UTC)
LATER = NOW + datetime.timedelta(hours=1)
AWAY = ConditionState(False, "Unreachable", "no route to host")


def a_vc(*conditions, **words):
    annotations = {f"tenancy.x-k8s.io/{word}": value for word, value in words.items()}
    status = {"conditions": msgspec.to_builtins(conditions)}
    return Object.of({"metadata": {"name": "one", "annotations": annotations}, "spec": {}, "status": status})


def reported(vc, synced=conditions.SYNCED, now=NOW):
    return conditions.conditions(vc, synced, now)


def test_an_invalid_annotation_is_a_condition_until_it_is_fixed():
    synced, unread = reported(a_vc(weight="much", allow="all"))
    assert (synced.type, synced.status) == ("Synced", "True")
    assert (unread.type, unread.status, unread.reason) == ("InvalidAnnotations", "True", "InvalidAnnotation")
    assert "using 1; annotation tenancy.x-k8s.io/allow: unknown allowance" in unread.message
    assert reported(a_vc(synced, unread, weight="2"), now=LATER) == [synced]


def test_an_unchanged_condition_keeps_its_transition_time():
    before = reported(a_vc(weight="much"), AWAY)
    assert reported(a_vc(*before, weight="much"), AWAY, LATER) == before


def test_a_condition_remembers_since_when_it_holds():
    before = reported(a_vc(weight="much"), AWAY)
    synced, unread = reported(a_vc(*before, weight="little"), now=LATER)
    assert synced.last_transition_time == "2030-01-01T13:00:00Z"
    assert unread.last_transition_time == "2030-01-01T12:00:00Z"


def test_a_problem_gets_one_warning_and_each_other_invalid_annotation_another():
    [away] = reported(a_vc(), AWAY)
    [well] = reported(a_vc())
    again = msgspec.structs.replace(away, message="still no route")
    assert conditions.needs_warning(away, None)
    assert conditions.needs_warning(away, well)
    assert not conditions.needs_warning(again, away)
    assert not conditions.needs_warning(well, away)
    _, much = reported(a_vc(weight="much"))
    _, little = reported(a_vc(weight="little"))
    assert conditions.needs_warning(much, None)
    assert conditions.needs_warning(little, much)
    assert not conditions.needs_warning(much, much)
