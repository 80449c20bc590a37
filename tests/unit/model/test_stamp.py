"""The stamp: it can be read back, and stamps of the upper object itself do not confuse it."""

from hansa.kube.objects import Object
from hansa.model import keys, stamp

ORIGIN = stamp.Origin("id", "u1", "shop", "web", frozenset({"vn1", "vn2"}))


def thing(**metadata: object) -> Object:
    return Object.of({"metadata": {"name": "web", "namespace": "shop"} | metadata})


def test_a_mark_is_read_as_it_was_put() -> None:
    marked = stamp.put(thing(labels={"app": "web"}, annotations={"note": "x"}), ORIGIN)
    assert stamp.of(marked) == ORIGIN
    assert stamp.carried(marked) == ({"app"}, {"note"})
    assert stamp.of(thing()) is None
    assert stamp.selector("id") == f"{keys.UPPER}=id"
    assert stamp.selector() == keys.UPPER


def test_a_copy_is_of_another_route_only_if_both_name_their_nodes_and_have_none_in_common() -> None:
    assert ORIGIN.is_other_route(frozenset({"vn3"}))
    assert not ORIGIN.is_other_route(frozenset({"vn2", "vn3"}))
    assert not ORIGIN.is_other_route(frozenset())
    assert not stamp.Origin("id", "u1", "shop", "web").is_other_route(frozenset({"vn3"}))


def test_cluster_wide_objects_have_a_mark_too() -> None:
    origin = stamp.Origin("id", "u1", "", "volume-1")
    assert stamp.of(stamp.put(thing(), origin)) == origin


def test_a_copy_of_a_copy_bears_one_mark() -> None:
    above = stamp.put(thing(labels={"app": "web"}), stamp.Origin("a higher one", "u0", "s", "n"))
    copied = stamp.put(above, ORIGIN)
    assert stamp.of(copied) == ORIGIN
    assert stamp.carried(copied) == ({"app"}, set())
    assert copied.annotations[keys.CARRIED] == "app;"


def test_the_lower_uid_annotation_is_not_synced_down() -> None:
    assert keys.LOWER_UID not in stamp.put(thing(annotations={keys.LOWER_UID: "l1"}), ORIGIN).annotations


def test_a_mark_that_was_damaged_carries_nothing() -> None:
    marked = stamp.put(thing(labels={"app": "web"}), ORIGIN)
    assert stamp.carried(marked.with_metadata(annotations={keys.UPPER_UID: "u1"})) == (set(), set())
