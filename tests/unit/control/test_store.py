import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simulation
from hansa.control import freshness, table
from hansa.control import versions as store_versions
from hansa.kube import errors, watching
from hansa.runtime import errors as runtime_errors
from machinery import Witness
from store_things import an_object, key, listed, make, versions


def test_a_list_and_changes_after_it_are_what_the_store_shows():
    async def main(world):
        cache = make(world)
        listed(cache, 10, an_object("a", 1), an_object("b", 2))
        cache.apply(watching.Modified(an_object("a", 11)))
        cache.apply(watching.Added(an_object("c", 12)))
        cache.apply(watching.Deleted(an_object("b", 13)))
        return versions(cache)

    assert simulation.run(main) == {"a": 11, "c": 12}


def test_a_partial_list_is_never_visible():
    async def main(world):
        cache = make(world)
        listed(cache, 10, an_object("a", 1))
        cache.apply(watching.Restarted())
        cache.apply(watching.Added(an_object("b", 20)))
        before = versions(cache)
        cache.apply(watching.Deleted(an_object("b", 21)))  # a streamed list may already bring changes
        cache.apply(watching.Added(an_object("c", 22)))
        cache.apply(watching.Synced("22"))
        return before, versions(cache)

    assert simulation.run(main) == ({"a": 1}, {"c": 22})


def test_the_end_of_a_list_that_did_not_begin_removes_nothing():
    async def main(world):
        cache = make(world)
        listed(cache, 5, an_object("a", 1), an_object("b", 2))
        cache.apply(watching.Synced("6"))
        assert versions(cache) == {"a": 1, "b": 2}

    simulation.run(main)


@pytest.mark.parametrize("version", ["9" * 5000, "٣", "", "1e3", "-1"])
def test_a_version_that_is_not_a_number_of_64_bits_is_neither_newer_nor_older(version):
    assert math.isnan(store_versions.number(version))


def test_a_relist_notifies_of_exactly_the_differences_including_deletions():
    async def main(world):
        cache = make(world)
        listed(cache, 10, an_object("same", 1), an_object("changed", 2), an_object("deleted", 3))
        notified = []
        cache.listen(notified.append, table.own_key)
        notified.clear()
        listed(cache, 30, an_object("same", 1), an_object("changed", 20), an_object("new", 25))
        return sorted(k.name for k in notified)

    assert simulation.run(main) == ["changed", "deleted", "new"]


def test_the_answer_to_a_write_is_seen_at_once_and_older_news_do_not_undo_it():
    async def main(world):
        cache = make(world)
        listed(cache, 10, an_object("a", 5))
        cache.observe(an_object("a", 15))
        cache.observe(an_object("new", 16))
        cache.apply(watching.Modified(an_object("a", 12)))
        first = versions(cache)
        cache.observe(an_object("a", 13))
        listed(cache, 14, an_object("a", 12))  # a list from before the writes
        return first, versions(cache)

    assert simulation.run(main) == ({"a": 15, "new": 16},) * 2


def test_an_older_answer_does_not_bring_back_what_was_deleted():
    async def main(world):
        cache = make(world)
        listed(cache, 10, an_object("a", 5), an_object("b", 6))
        cache.apply(watching.Deleted(an_object("a", 20)))
        cache.observe(an_object("a", 15))
        listed(cache, 30)
        cache.observe(an_object("b", 25))
        return versions(cache)

    assert simulation.run(main) == {}


def test_a_deletion_of_our_own_is_seen_at_once_and_lagging_news_do_not_undo_it():
    async def main(world):
        cache = make(world)
        listed(cache, 10, an_object("a", 5))
        cache.observe_gone(key("a"), "uid-a")
        cache.apply(watching.Modified(an_object("a", 12)))
        cache.observe(an_object("a", 13))
        listed(cache, 14, an_object("a", 13))
        gone = versions(cache)
        cache.apply(watching.Deleted(an_object("a", 15)))
        cache.apply(watching.Added(an_object("a", 20, uid="another")))
        return gone, versions(cache)

    assert simulation.run(main) == ({}, {"a": 20})


def test_a_deletion_of_a_former_object_leaves_its_successor():
    async def main(world):
        cache = make(world)
        listed(cache, 10, an_object("a", 5, uid="first"))
        cache.observe(an_object("a", 20, uid="second"))
        cache.observe_gone(key("a"), "first")
        cache.apply(watching.Deleted(an_object("a", 19, uid="first")))
        return versions(cache)

    assert simulation.run(main) == {"a": 20}


def test_a_server_that_was_set_back_is_believed():
    async def main(world):
        cache = make(world)
        listed(cache, 100, an_object("a", 90), an_object("b", 95))
        cache.observe_gone(key("b"), "uid-b")
        listed(cache, 50, an_object("a", 40), an_object("b", 45))
        cache.apply(watching.Modified(an_object("a", 51)))
        return versions(cache)

    assert simulation.run(main) == {"a": 51, "b": 45}


def test_versions_that_are_no_numbers_are_left_to_the_watch():
    async def main(world):
        cache = make(world)
        listed(cache, "x1", an_object("a", "v1"))
        cache.observe(an_object("a", "v2"))
        first = cache.get(key("a")).version
        cache.apply(watching.Modified(an_object("a", "v3")))
        second = cache.get(key("a")).version
        cache.apply(watching.Deleted(an_object("a", "v4")))
        return first, second, len(cache)

    assert simulation.run(main) == ("v1", "v3", 0)


def test_an_answer_that_no_longer_matches_leaves_and_lagging_news_do_not_bring_it_back():
    async def main(world):
        cache = make(world, matches=lambda obj: obj.labels.get("in") == "yes")
        listed(cache, 10, an_object("a", 5, labels={"in": "yes"}))
        cache.observe(an_object("a", 20))
        cache.apply(watching.Modified(an_object("a", 15, labels={"in": "yes"})))
        left = versions(cache)
        cache.apply(watching.Deleted(an_object("a", 20)))
        cache.apply(watching.Added(an_object("a", 25, labels={"in": "yes"})))
        return left, versions(cache)

    assert simulation.run(main) == ({}, {"a": 25})


def test_it_is_known_after_the_first_list_and_unknown_when_the_watch_is_silent_for_too_long():
    async def main(world):
        cache = make(world, patience=60)
        known = cache.freshness
        notified = []
        known.listen(lambda is_known: notified.append((world.clock.now(), is_known)))
        with pytest.raises(freshness.Unlisted, match="pods of r1 not listed within 5 s: not listed yet"):
            await known.wait_synced(5)
        listed(cache, 10)
        await known.wait_synced(5)
        broken = watching.Interrupted(errors.Unreachable("cannot reach r1"), 1.0)
        cache.apply(broken)
        await world.clock.sleep(40)
        cache.apply(broken)
        assert known.is_known
        await world.clock.sleep(30)
        assert (known.is_known, known.has_synced, known.error) == (False, True, "cannot reach r1")
        cache.apply(watching.Bookmark("11"))
        assert (known.is_known, known.error) == (True, "")
        await world.clock.sleep(1000)
        return notified

    assert simulation.run(main) == [(5, True), (65, False), (75, True)]


def test_a_relist_under_way_does_not_make_a_silent_store_known_again():
    async def main(world):
        cache = make(world, patience=60)
        listed(cache, 10)
        cache.apply(watching.Interrupted(errors.Gone("compacted"), 1.0))
        await world.clock.sleep(100)
        cache.apply(watching.Restarted())
        cache.apply(watching.Added(an_object("a", 20)))
        under_way = cache.freshness.is_known
        cache.apply(watching.Synced("30"))
        return under_way, cache.freshness.is_known

    assert simulation.run(main) == (False, True)


def test_an_index_finds_objects_by_what_they_have_now():
    def by_label(obj):
        return obj.labels.values()

    async def main(world):
        cache = make(world)
        listed(cache, 10, an_object("a", 1, labels={"x": "red"}), an_object("b", 2, labels={"x": "red"}))
        cache.index("label", by_label)
        cache.index("label", by_label)
        cache.apply(watching.Modified(an_object("a", 11, labels={"x": "blue", "y": "green"})))
        cache.apply(watching.Added(an_object("c", 12, labels={"x": "red"})))
        cache.apply(watching.Deleted(an_object("b", 13)))
        with pytest.raises(runtime_errors.HansaError, match="another index label"):
            cache.index("label", lambda obj: [])
        return {value: [obj.name for obj in cache.find("label", value)] for value in ("red", "blue", "green", "black")}

    assert simulation.run(main) == {"red": ["c"], "blue": ["a"], "green": ["a"], "black": []}


def test_a_listener_gets_the_keys_before_and_after_a_change_and_those_of_cached_objects():
    async def main(world):
        cache, notified = make(world), []
        listed(cache, 10, an_object("a", 1, labels={"owner": "x"}))
        end = cache.listen(notified.append, lambda obj: obj.labels.values())
        cache.apply(watching.Modified(an_object("a", 11, labels={"owner": "y"})))
        cache.apply(watching.Deleted(an_object("a", 12, labels={"owner": "y"})))
        end()
        cache.apply(watching.Added(an_object("b", 13, labels={"owner": "z"})))
        return notified

    assert simulation.run(main) == ["x", "x", "y", "y"]


def test_a_failing_listener_is_counted_and_disturbs_no_other():
    async def main(world):
        cache, notified = make(world), []

        def broken(_):
            raise ValueError("a bug")

        cache.listen(broken, table.own_key)
        cache.listen(notified.append, broken)
        cache.listen(notified.append, table.own_key)
        listed(cache, 10, an_object("a", 1))
        return [k.name for k in notified], world.metrics.text()

    notified, text = simulation.run(main)
    assert notified == ["a"]
    assert 'hansa_listener_failures_total{cluster="r1",resource="pods"} 2' in text


def test_a_snapshot_stays_as_it_was():
    async def main(world):
        cache = make(world)
        listed(cache, 10, an_object("a", 1))
        before = cache.snapshot()
        cache.apply(watching.Deleted(an_object("a", 11)))
        with pytest.raises(TypeError):
            before[key("b")] = an_object("b", 1)
        return list(before), list(cache)

    assert simulation.run(main) == ([key("a")], [])


class Server:
    """The true history of a few objects, applied to a store by a lagging watch and by responses in any order."""

    def __init__(self, draw):
        self.draw, self.version, self.next_uid = draw, 0, 0
        self.truth, self.news, self.answers = {}, [], []

    def write(self):
        name = self.draw(st.sampled_from("abc"))
        self.version += 1
        old = self.truth.get(name)
        if old and self.draw(st.booleans()):
            del self.truth[name]
            self.news.append(watching.Deleted(an_object(name, self.version, uid=old.uid)))
            self.answers.append(("gone", old))
            return
        self.next_uid += not old
        new = an_object(name, self.version, uid=old.uid if old else f"uid-{self.next_uid}")
        self.truth[name] = new
        self.news.append(watching.Modified(new) if old else watching.Added(new))
        self.answers.append(("seen", new))


def answer(cache, what, obj):
    if what == "seen":
        cache.observe(obj)
    else:
        cache.observe_gone(obj.key, obj.uid)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_in_whatever_order_news_and_answers_come_no_object_steps_back_or_returns_from_the_dead(data):
    async def main(world):
        cache, server = make(world), Server(data.draw)
        witness = Witness(cache)
        listed(cache, 0)
        for step in data.draw(st.lists(st.sampled_from(["write", "write", "watch", "answer", "relist"]), max_size=40)):
            if step == "write":
                server.write()
            elif step == "watch" and server.news:
                cache.apply(server.news.pop(0))
            elif step == "answer" and server.answers:
                answer(cache, *server.answers.pop(data.draw(st.integers(0, len(server.answers) - 1))))
            elif step == "relist":
                server.news.clear()
                listed(cache, server.version, *server.truth.values())
        for change in server.news:
            cache.apply(change)
        for late in server.answers:
            answer(cache, *late)
        assert not witness.wrong
        assert versions(cache) == {name: int(obj.version) for name, obj in server.truth.items()}
        assert not cache._history._gone

    simulation.run(main)
