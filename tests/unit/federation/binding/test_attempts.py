"""The attempts to place a pod: which targets are avoided, for how long, and what is reported."""

import random

from hansa.federation.binding import choosing, proxy
from hansa.federation.binding.attempts import AVOID, Attempts
from hansa.federation.binding.nodes import VirtualNodes
from hansa.federation.binding.reserved_views import ReservedViews
from proxies import a_proxy, a_target, a_virtual_node, unscheduled
from scheduling_things import a_node

RANDOM = random.Random(0)


def an_attempt(target="c1", now=0.0):
    attempts = Attempts(proxy.request_of(a_proxy()))
    attempts.begin(now, "")
    attempts.fail(target, "its volume is elsewhere", now, RANDOM)
    return attempts


def verdict(cpu, *, most="4"):
    targets, nodes = ReservedViews(), VirtualNodes()
    targets.update(a_target("c1", a_node("c1-0", cpu=most)), 0.0)
    nodes.update("c1", a_virtual_node("c1"))
    request = proxy.request_of(a_proxy(cpu=cpu))
    return choosing.choose(request, targets, nodes.view(request, ()))


def test_a_target_is_avoided_for_a_while_and_as_long_as_it_fails():
    attempts = an_attempt()
    assert attempts.avoided("c2", 1.0) == {"c1": "its volume is elsewhere"}
    later = AVOID.first * 1.2
    assert attempts.avoided("c1", later)
    assert attempts.avoided("c2", later) == {}
    assert 0 < attempts.retry_seconds(1.0) < later
    assert attempts.retry_seconds(later) is None


def test_each_attempt_that_fails_doubles_the_time_and_each_look_at_it_does_not():
    attempts = an_attempt()
    for _ in range(5):
        attempts.fail("c1", "again", 1.0, RANDOM)
    assert attempts.failed["c1"].times == 1
    attempts.begin(20.0, "")
    attempts.fail("c1", "again", 20.0, RANDOM)
    assert attempts.failed["c1"].times == 2
    assert attempts.failed["c1"].until > 20.0 + 1.5 * AVOID.first


def test_a_target_whose_summary_shows_the_reason_is_tried_as_soon_as_that_changes():
    attempts = an_attempt()
    attempts.forget_explained(verdict("1"))
    assert attempts.avoided("c2", 1.0)
    attempts.forget_explained(verdict("9"))
    assert not attempts.avoided("c2", 1.0)


def test_the_failure_of_the_attempt_before_is_not_taken_for_that_of_this_one():
    attempts = an_attempt()
    attempts.begin(5.0, "no node")
    assert attempts.stale_seconds("no node", 6.0) == 9.0
    assert attempts.stale_seconds("no node", 15.0) == 0.0
    assert attempts.stale_seconds("no volume", 6.0) == 0.0


def test_a_refusal_is_news_once_for_its_kind():
    attempts = an_attempt()
    assert attempts.is_news(verdict("9"), 1.0)
    assert not attempts.is_news(verdict("9", most="3"), 2.0)
    assert attempts.is_news(verdict("9"), 302.0)


def test_the_failure_of_another_target_is_not_that_of_the_present_one():
    pod = a_proxy(conditions=[unscheduled("c1: 0/3 nodes are available")])
    assert proxy.failure(pod, "c1") == "0/3 nodes are available"
    assert proxy.failure(pod, "c") == ""
    assert proxy.failure(pod, "c2") == ""
