"""What the syncer tells on a VirtualCluster, and what of it is worth a Warning."""

import datetime

import msgspec

from hansa.kube.objects import Object
from hansa.tenancy.operator.status import Verdict
from hansa.tenancy.syncing import conditions

NOW = datetime.datetime(2030, 1, 1, 12, 0, tzinfo=datetime.UTC)
LATER = NOW + datetime.timedelta(hours=1)
AWAY = Verdict(False, "Unreachable", "no route to host")


def a_vc(*conditions, **words):
    annotations = {f"tenancy.x-k8s.io/{word}": value for word, value in words.items()}
    status = {"conditions": msgspec.to_builtins(conditions)}
    return Object.of({"metadata": {"name": "one", "annotations": annotations}, "spec": {}, "status": status})


def told(vc, synced=conditions.WELL, now=NOW):
    return conditions.conditions(vc, synced, now)


def test_what_cannot_be_read_is_a_condition_until_it_is_mended():
    synced, unread = told(a_vc(weight="much", allow="all"))
    assert (synced.type, synced.status) == ("Synced", "True")
    assert (unread.type, unread.status, unread.reason) == ("InvalidAnnotations", "True", "InvalidAnnotation")
    assert "the weight 1 is used; tenancy.x-k8s.io/allow names" in unread.message
    assert told(a_vc(synced, unread, weight="2"), now=LATER) == [synced]


def test_saying_the_same_later_is_saying_the_same():
    before = told(a_vc(weight="much"), AWAY)
    assert told(a_vc(*before, weight="much"), AWAY, LATER) == before


def test_a_condition_remembers_since_when_it_holds():
    before = told(a_vc(weight="much"), AWAY)
    synced, unread = told(a_vc(*before, weight="little"), now=LATER)
    assert synced.last_transition_time == "2030-01-01T13:00:00Z"
    assert unread.last_transition_time == "2030-01-01T12:00:00Z"


def test_a_trouble_is_news_once_and_another_annotation_each_time():
    [away] = told(a_vc(), AWAY)
    [well] = told(a_vc())
    again = msgspec.structs.replace(away, message="still no route")
    assert conditions.is_bad_news(away, None)
    assert conditions.is_bad_news(away, well)
    assert not conditions.is_bad_news(again, away)
    assert not conditions.is_bad_news(well, away)
    _, much = told(a_vc(weight="much"))
    _, little = told(a_vc(weight="little"))
    assert conditions.is_bad_news(much, None)
    assert conditions.is_bad_news(little, much)
    assert not conditions.is_bad_news(much, much)
