"""Limits of the objects and bytes in stores."""

import pytest

import simulation
from hansa.control.content_budget import ContentBudget, OutlineBudget
from hansa.kube import errors, objects, watching
from store_things import an_object, key, listed, make, versions


def a_map(name, version, size):
    return objects.Object.of(
        {
            "metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": str(version)},
            "data": "x" * size,
        }
    )


def wholes(cache):
    return {k.name for k, obj in cache.snapshot().items() if obj.is_whole}


def test_objects_beyond_the_limit_of_content_are_outlined_and_keep_their_size():
    async def main(world):
        cache = make(world, budget=ContentBudget(250))
        listed(cache, 10, a_map("a", 1, 98), a_map("b", 2, 98), a_map("c", 3, 98))
        first = wholes(cache), {obj.size for obj in cache.snapshot().values()}
        cache.apply(watching.Deleted(a_map("a", 11, 98)))
        cache.apply(watching.Modified(a_map("c", 12, 98)))
        cache.apply(watching.Added(a_map("d", 13, 98)))
        listed(cache, 20, a_map("d", 13, 98), a_map("b", 2, 98), a_map("c", 12, 98))
        return first, wholes(cache), cache.get(key("d")).get("data")

    assert simulation.run(main) == (({"a", "b"}, {100}), {"b", "c"}, None)


def test_stores_share_a_limit_of_objects_which_a_list_and_a_watch_do_not_exceed():
    async def main(world):
        outlines = OutlineBudget(3)
        one, other = (make(world, budget=ContentBudget(1000, outlines)) for _ in range(2))
        listed(one, 10, an_object("a", 1), an_object("b", 2))
        listed(other, 10, an_object("c", 3))
        with pytest.raises(errors.Unreachable, match="more than 3 objects"):
            one.apply(watching.Added(an_object("d", 11)))
        with pytest.raises(errors.Unreachable, match="more than 3 objects"):
            listed(other, 20, an_object("c", 3), an_object("e", 4))
        one.observe(an_object("d", 11))
        assert (versions(one), versions(other), outlines.is_exceeded) == ({"a": 1, "b": 2}, {"c": 3}, True)
        one.apply(watching.Modified(an_object("a", 12)))
        one.apply(watching.Deleted(an_object("b", 13)))
        listed(other, 30, an_object("c", 3), an_object("e", 4))
        other.close()
        return outlines.used, outlines.is_exceeded

    assert simulation.run(main) == (1, False)


def test_content_beyond_a_strict_limit_is_an_error_of_the_watch_and_not_of_our_own_writes():
    async def main(world):
        cache = make(world, budget=ContentBudget(250, OutlineBudget(9), is_strict=True))
        listed(cache, 10, a_map("a", 1, 98), a_map("b", 2, 98))
        with pytest.raises(errors.Unreachable, match="more than 0 MiB"):
            cache.apply(watching.Added(a_map("c", 11, 98)))
        cache.observe(a_map("d", 13, 98))
        before = wholes(cache)
        with pytest.raises(errors.Unreachable, match="more than 0 MiB"):
            listed(cache, 20, *(a_map(name, 12, 98) for name in "abc"))
        listed(cache, 30, a_map("b", 2, 98), a_map("e", 15, 98))
        return before, wholes(cache)

    assert simulation.run(main) == ({"a", "b"}, {"b", "e"})


@pytest.mark.parametrize("field", ["name", "namespace", "uid", "resourceVersion"])
def test_an_object_whose_outline_would_be_long_is_refused(field):
    long = objects.Object.of({"metadata": {"name": "a", "uid": "b", "resourceVersion": "2", field: "9" * 2000}})

    async def main(world):
        cache = make(world, budget=ContentBudget(1000, OutlineBudget(3)))
        listed(cache, 1)
        with pytest.raises(errors.Unreachable, match="more than 1024 characters"):
            cache.apply(watching.Added(long))
        return len(cache)

    assert simulation.run(main) == 0


def test_an_object_that_a_strict_budget_refuses_is_not_counted():
    async def main(world):
        outlines = OutlineBudget(3)
        cache = make(world, budget=ContentBudget(150, outlines, is_strict=True))
        listed(cache, 10, a_map("a", 1, 98))
        with pytest.raises(errors.Unreachable, match="MiB"):
            cache.apply(watching.Added(a_map("b", 11, 98)))
        return outlines.used, len(cache)

    assert simulation.run(main) == (1, 1)
