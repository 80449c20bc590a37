from hansa.control import event_correlation
from hansa.control.event_correlation import EventType, InvolvedObject, Occurrence

POD = InvolvedObject("v1", "Pod", "ns", "a", "uid-a")


def occurrence(message="it failed", reason="Failed", subject=POD):
    return Occurrence(subject, EventType.WARNING, reason, message)


def test_the_same_again_is_one_event_with_a_higher_count():
    correlator = event_correlation.Correlator()
    first = correlator.count(occurrence(), 0)
    second = correlator.count(occurrence(), 5)
    assert first is second
    assert (second.count, second.first, second.last) == (2, 0, 5)


def test_after_a_quiet_window_the_same_is_a_new_event():
    correlator = event_correlation.Correlator()
    first = correlator.count(occurrence(), 0)
    assert correlator.count(occurrence(), 601) is not first


def test_another_reason_object_or_message_is_another_event():
    correlator = event_correlation.Correlator()
    other = InvolvedObject("v1", "Pod", "ns", "b", "uid-b")
    different = [occurrence(), occurrence("else"), occurrence(reason="Else"), occurrence(subject=other)]
    assert len({id(correlator.count(one, 0)) for one in different}) == 4


def test_the_tenth_different_message_for_one_reason_and_all_after_it_are_combined():
    correlator = event_correlation.Correlator()
    series = [correlator.count(occurrence(f"message {n}"), n) for n in range(12)]
    assert len({id(one) for one in series}) == 10
    assert series[8].occurrence.message == "message 8"
    assert series[11] is series[9]
    assert series[11].occurrence.message == "(combined from similar events): message 11"
    assert series[11].count == 3


def test_an_object_that_causes_too_many_events_is_silenced_and_others_are_not():
    correlator = event_correlation.Correlator()
    counted = [correlator.count(occurrence(), 0.0) for _ in range(30)]
    assert [one is not None for one in counted] == [True] * 25 + [False] * 5
    assert correlator.count(occurrence(subject=InvolvedObject("v1", "Pod", "ns", "b", "uid-b")), 0.0) is not None
    assert correlator.count(occurrence(), 299.0) is None
    assert correlator.count(occurrence(), 301.0) is not None


def test_what_is_remembered_is_bounded():
    correlator = event_correlation.Correlator()
    for number in range(5000):
        correlator.count(occurrence(subject=InvolvedObject("v1", "Pod", "ns", f"p{number}", "")), number)
    assert len(correlator._series._items) == event_correlation.MOST
