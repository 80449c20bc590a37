"""Answers about callers that are kept for seconds."""

import asyncio

import pytest

import simulation
from hansa.kubelet import answers
from hansa.kubelet.answers import Answers
from hansa.runtime.errors import HansaError


class Server:
    """Answers after a second; counts what it is asked."""

    def __init__(self):
        self.asked, self.is_broken = [], False

    def asking(self, key):
        async def ask():
            self.asked.append(key)
            await asyncio.sleep(1)
            if self.is_broken:
                raise HansaError("broken")
            return f"answer to {key}"

        return ask


def play(scene):
    async def main(world):
        server, kept = Server(), Answers(world.clock)
        await scene(server, lambda key: kept.get(key, server.asking(key)), kept)

    simulation.run(main)


def test_a_burst_asks_once_and_later_calls_ask_again():
    async def scene(server, get, _):
        assert set(await asyncio.gather(*(get("a") for _ in range(50)))) == {"answer to a"}
        assert await get("a") == "answer to a"
        assert server.asked == ["a"]
        await asyncio.sleep(answers.KEPT_SECONDS)
        await get("a")
        assert server.asked == ["a", "a"]

    play(scene)


def test_a_failure_is_shared_and_not_kept():
    async def scene(server, get, _):
        server.is_broken = True
        failed = await asyncio.gather(*(get("a") for _ in range(5)), return_exceptions=True)
        assert [str(one) for one in failed] == ["broken"] * 5
        assert server.asked == ["a"]
        server.is_broken = False
        assert await get("a") == "answer to a"

    play(scene)


def test_a_caller_who_leaves_takes_no_answer_from_others():
    async def scene(server, get, _):
        first, second = asyncio.create_task(get("a")), asyncio.create_task(get("a"))
        await asyncio.sleep(0.5)
        first.cancel()
        assert await second == "answer to a"
        with pytest.raises(asyncio.CancelledError):
            await first

    play(scene)


def test_the_oldest_answers_are_dropped():
    async def scene(server, get, kept):
        await asyncio.gather(*(get(number) for number in range(answers.MOST + 1)))
        await get(answers.MOST)
        assert len(server.asked) == answers.MOST + 1
        await get(0)
        assert len(server.asked) == answers.MOST + 2

    play(scene)
