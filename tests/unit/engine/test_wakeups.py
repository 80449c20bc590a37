"""Who waits for what."""

from hansa.engine.wakeups import Wakeups
from hansa.kube import resources
from hansa.model.pair import Key


def key(name):
    return Key("up", resources.PODS, "ns", name)


def test_who_waits_is_woken_once_and_nobody_else():
    woken = []
    waiting = Wakeups(woken.append)
    waiting.put(key("a"), until="low")
    waiting.put(key("a"), until="low")
    waiting.put(key("b"), until="other")
    waiting.notify("low")
    waiting.notify("low")
    assert woken == [key("a")]
    assert waiting.keys("other") == [key("b")]


def test_those_who_waited_longest_are_woken_first():
    woken = []
    waiting = Wakeups(woken.append)
    for name in "abc":
        waiting.put(key(name), until="room")
    waiting.notify("room", at_most=2)
    assert woken == [key("a"), key("b")]
    waiting.notify("room", at_most=2)
    assert woken == [key("a"), key("b"), key("c")]
    assert waiting.keys("room") == []


def test_who_is_woken_may_wait_again_at_once():
    waiting = Wakeups(lambda one: waiting.put(one, until="room"))
    waiting.put(key("a"), until="room")
    waiting.notify("room")
    assert waiting.keys("room") == [key("a")]


def test_nothing_of_a_cluster_that_is_gone_waits():
    waiting = Wakeups(lambda _: None)
    other = key("a")._replace(cluster="other")
    waiting.put(key("a"), until="room")
    waiting.put(other, until="room")
    waiting.put(key("b"), until="low")
    waiting.forget("up")
    assert waiting.keys("room") == [other]
    assert waiting._keys.keys() == {"room"}
