"""Limits of requests in flight: whose keys wait, and when they are woken."""

import asyncio
import contextlib
import types

import pytest

import simulation
from hansa.engine import inflight
from hansa.engine.inflight import InflightRequests
from hansa.kube import resources
from hansa.model.pair import Key

HEALTH = types.SimpleNamespace(listen=lambda _: None, trust=lambda: None, suspect=lambda: None, error="")


def key(name, upper="mallory"):
    return Key(upper, resources.PODS, "default", name)


def play(scene, most):
    async def main(world):
        requests = InflightRequests(HEALTH)
        requests.most = most
        return await scene(requests, world)

    return simulation.run(main)


@contextlib.asynccontextmanager
async def hanging(requests, *uppers):
    """A request for each of these upper clusters, which hang; yields a function that ends the first one."""
    async with contextlib.AsyncExitStack() as everything:
        stacks = []
        for one in uppers:
            stacks.append(stack := contextlib.AsyncExitStack())
            everything.push_async_callback(stack.aclose)
            await stack.enter_async_context(requests.request(one))

        async def end():
            await stacks.pop(0).aclose()

        yield end


@pytest.mark.parametrize(
    ("most", "share", "upper", "has_room"),
    [(9, 2, "mallory", False), (9, 3, "mallory", True), (9, 1, "alice", True), (2, 9, "alice", False)],
)
def test_there_is_room_within_the_limit_of_the_cluster_and_of_whom_the_request_is_for(most, share, upper, has_room):
    async def scene(requests, _):
        async with hanging(requests, "mallory", "mallory"):
            return requests.has_room(upper, share)

    assert play(scene, most) is has_room


def test_each_request_that_ends_wakes_one_key_of_its_cluster_and_one_of_another_and_the_last_wakes_more():
    async def scene(requests, _):
        woken = []
        async with hanging(requests, "mallory", "mallory") as end:
            for upper in ("mallory", "alice"):
                for name in ("a", "b", "c", "a"):
                    requests.wait(upper, key(name, upper), woken.append)
            await end()
            assert woken == [key("a"), key("a", "alice")]
            await end()
            assert woken[2:] == [key(name, upper) for upper in ("mallory", "alice") for name in "bc"]

    play(scene, 2)


def test_keys_that_wait_for_long_without_a_break_are_reported_once():
    async def scene(requests, world):
        reported = []
        requests.listen(reported.append)
        async with hanging(requests, "mallory") as end:
            requests.wait("mallory", key("a"), lambda _: None)
            await world.clock.sleep(inflight.FULL - 1)
            assert (requests.waiting("mallory"), reported) == (0, [])
            await end()
        async with hanging(requests, "mallory"):
            requests.wait("mallory", key("a"), lambda _: None)
            await world.clock.sleep(inflight.FULL - 1)
            assert reported == []
            requests.wait("mallory", key("b"), lambda _: None)
            await world.clock.sleep(2 * inflight.FULL)
            assert (requests.waiting("mallory"), requests.waiting(), requests.waiting("alice")) == (2, 2, 0)
            assert reported == ["mallory"]
        assert (requests.waiting(), len(requests)) == (0, 0)
        await asyncio.sleep(0)

    play(scene, 1)
