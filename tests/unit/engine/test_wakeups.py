"""Keys that wait for topics, and are woken by them."""

from hansa.engine.wakeups import Wakeups
from hansa.kube import resources
from hansa.model.pair import Key


def key(name):
    return Key("up", resources.PODS, "ns", name)


def test_only_waiting_keys_are_woken_and_only_once():
    woken = []
    wakeups = Wakeups(woken.append)
    wakeups.put(key("a"), until="low")
    wakeups.put(key("a"), until="low")
    wakeups.put(key("b"), until="other")
    wakeups.notify("low")
    wakeups.notify("low")
    assert woken == [key("a")]
    assert wakeups.keys("other") == [key("b")]


def test_those_who_waited_longest_are_woken_first():
    woken = []
    wakeups = Wakeups(woken.append)
    for name in "abc":
        wakeups.put(key(name), until="room")
    wakeups.notify("room", at_most=2)
    assert woken == [key("a"), key("b")]
    wakeups.notify("room", at_most=2)
    assert woken == [key("a"), key("b"), key("c")]
    assert wakeups.keys("room") == []


def test_who_is_woken_may_wait_again_at_once():
    wakeups = Wakeups(lambda one: wakeups.put(one, until="room"))
    wakeups.put(key("a"), until="room")
    wakeups.notify("room")
    assert wakeups.keys("room") == [key("a")]


def test_nothing_of_a_cluster_that_is_gone_waits():
    wakeups = Wakeups(lambda _: None)
    other = key("a")._replace(cluster="other")
    wakeups.put(key("a"), until="room")
    wakeups.put(other, until="room")
    wakeups.put(key("b"), until="low")
    wakeups.forget("up")
    assert wakeups.keys("room") == [other]
    assert wakeups._keys.keys() == {"room"}


def test_a_reconciled_key_waits_only_for_what_it_waits_for_again_and_keeps_its_position():
    woken = []
    wakeups = Wakeups(woken.append)
    for name in "ab":
        wakeups.put(key(name), until="room")
        wakeups.put(key(name), until=f"once-{name}")
    with wakeups.renewed(key("a")):
        wakeups.put(key("a"), until="room")
    assert wakeups.keys("once-a") == []
    wakeups.notify("room", at_most=1)
    assert woken == [key("a")]
    assert wakeups._keys.keys() == {"room", "once-b"}


def test_a_change_during_a_reconcile_wakes_its_key():
    woken = []
    wakeups = Wakeups(woken.append)
    wakeups.put(key("a"), until="low")
    with wakeups.renewed(key("a")):
        wakeups.notify("low")
    assert woken == [key("a")]
    assert len(wakeups) == 0
    assert not wakeups._keys


def test_a_key_whose_object_is_gone_waits_for_nothing():
    wakeups = Wakeups(lambda _: None)
    wakeups.put(key("a"), until="low")
    wakeups.forget_key(key("a"))
    wakeups.forget_key(key("never"))
    assert len(wakeups) == 0
    assert not wakeups._keys
