"""Work in several clusters that does not wait for the slowest, by simulated time."""

import asyncio
import logging

import pytest

import simulation
from hansa.engine import fanout
from hansa.kube import resources
from hansa.model.pair import Key

KEY = Key("up", resources.SECRETS, "shop", "token")


def play(scene):
    async def main(world):
        ended, under_way = [], set()
        work = fanout.Fanout(lambda key, result: ended.append((world.clock.now(), key, result)))
        await scene(work, ended, under_way)
        await work.close()

    simulation.run(main)


async def taking(seconds, result):
    await asyncio.sleep(seconds)
    return result


async def failing(seconds):
    await asyncio.sleep(seconds)
    raise RuntimeError("a bug")


def test_what_comes_in_a_moment_is_the_answer():
    async def scene(work, ended, under_way):
        assert await work.run(KEY, {"a": taking(0, "x"), "b": taking(0.1, "y")}, under_way) == ["x", "y"]
        assert (ended, under_way) == ([], set())
        assert await work.run(KEY, {}, under_way) == []

    play(scene)


def test_slow_work_goes_on_in_the_background_and_reports_when_it_ends():
    async def scene(work, ended, under_way):
        assert await work.run(KEY, {"a": taking(0, "x"), "b": taking(8, "y")}, under_way) == ["x"]
        assert asyncio.get_running_loop().time() == pytest.approx(fanout.PATIENCE)
        assert under_way == {(KEY, "b")}
        await asyncio.sleep(10)
        assert ended == [(8, KEY, "y")]
        assert under_way == set()

    play(scene)


def test_an_unexpected_error_in_background_work_is_logged_and_its_key_reported(caplog):
    async def scene(work, ended, under_way):
        assert await work.run(KEY, {"a": failing(1)}, under_way) == []
        with caplog.at_level(logging.ERROR):
            await asyncio.sleep(2)
        assert ended == [(1, KEY, None)]
        assert "failed unexpectedly" in caplog.text

    play(scene)


def test_who_is_cancelled_while_it_waits_leaves_its_work_to_the_owner():
    async def scene(work, ended, under_way):
        waiting = asyncio.create_task(work.run(KEY, {"a": taking(5, "x")}, under_way))
        await asyncio.sleep(0.1)
        waiting.cancel()
        await asyncio.sleep(6)
        assert ended == [(5, KEY, "x")]
        assert await work.run(KEY, {"a": taking(50, "never")}, under_way) == []
        await work.close()
        assert (len(ended), under_way) == (1, set())

    play(scene)
