"""Which clusters take part and how they are linked."""

import types

import pytest

from hansa.engine.registry import ClusterRegistry, Route
from hansa.runtime.errors import HansaError


def registry(*names):
    made = ClusterRegistry()
    for name in names:
        made.join(types.SimpleNamespace(name=name))
    return made


def test_routes_are_found_from_both_ends():
    league = registry("up", "a", "b")
    league.link(Route("up", "a", settings={"x": 1}, nodes=frozenset({"vn"})))
    league.link(Route("up", "b"))
    assert league.uppers() == ["up"]
    assert [route.lower for route in league.routes("up")] == ["a", "b"]
    turned = league.reversed_routes()
    assert turned.uppers() == ["a", "b"]
    assert turned.routes("a") == [Route("a", "up", settings={"x": 1})]
    assert turned.clusters is not None


def test_a_listener_is_called_on_every_change():
    league, calls = registry("up", "a"), []
    end = league.listen(lambda: calls.append(len(league.routes("up"))))
    league.link(Route("up", "a"))
    league.link(Route("up", "a", nodes=frozenset({"vn"})))
    league.unlink("up", "a")
    league.unlink("up", "a")
    assert calls == [1, 1, 0]
    end()
    league.link(Route("up", "a"))
    assert len(calls) == 3


def test_names_are_unique_and_routes_have_two_ends():
    league = registry("up")
    with pytest.raises(HansaError, match="cluster up exists already"):
        league.join(types.SimpleNamespace(name="up"))
    with pytest.raises(HansaError, match="cannot link up to a: cluster a does not exist"):
        league.link(Route("up", "a"))
