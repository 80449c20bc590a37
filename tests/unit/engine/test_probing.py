"""Detection of a server that does not answer, by simulated time."""

import asyncio

import pytest

import simulation
from hansa.engine import inflight, probing
from hansa.kube import errors
from hansa.runtime import tasks


class Server:
    """Answers at once, or not before the caller gives up."""

    def __init__(self):
        self.is_silent, self.asked, self.lag = False, 0, 0.0

    async def request(self, _method, _path, *, doing, deadline):
        self.asked += 1
        if self.is_silent:
            await asyncio.sleep(deadline + self.lag)
            raise errors.Unreachable(f"cannot {doing}: no answer")


class Scene:
    """A server, its health, and writes to it."""

    def __init__(self, world):
        self.world, self.server = world, Server()
        self.health = probing.ReachabilityProbe("c", self.server, clock=world.clock)
        self.inflight, self.changes = inflight.InflightRequests(self.health), []
        self.health.listen(lambda: self.changes.append((world.clock.now(), bool(self.health.error))))

    async def write(self, seconds):
        """A write that the server needs so long for."""
        async with self.inflight.request():
            await asyncio.sleep(seconds)


def play(scene):
    async def main(world):
        stage = Scene(world)
        probe = asyncio.create_task(stage.health.run())
        await world.clock.sleep(0.1)
        assert stage.health.is_reachable
        await scene(stage)
        await tasks.cancel(probe)

    simulation.run(main)


def test_silence_is_noticed_by_two_questions_in_a_row():
    async def scene(stage):
        stage.server.is_silent = True
        await stage.world.clock.sleep(20)
        [_, (noticed, is_troubled)] = stage.changes
        assert is_troubled
        assert noticed == pytest.approx(probing.PERIOD + 2 * probing.DEADLINE + probing.SECOND_PROBE)
        stage.server.is_silent = False
        await stage.world.clock.sleep(probing.PERIOD + probing.DEADLINE)
        assert stage.health.is_reachable

    play(scene)


def test_a_write_without_an_answer_makes_us_ask_at_once_and_ends_when_the_server_does_not_answer_either():
    async def scene(stage):
        stage.server.is_silent = True
        began = stage.world.clock.now()
        with pytest.raises(errors.Unreachable, match="the cluster is unreachable: cannot probe"):
            await stage.write(600)
        assert stage.world.clock.now() - began == pytest.approx(inflight.SLOW + probing.DEADLINE)
        assert len(stage.inflight) == 0
        with pytest.raises(errors.Unreachable):
            await stage.write(600)
        assert stage.world.clock.now() - began == pytest.approx(inflight.SLOW + probing.DEADLINE), "no second wait"

    play(scene)


def test_a_server_that_is_slow_and_answers_keeps_its_writes():
    async def scene(stage):
        asked = stage.server.asked
        await stage.write(2.5)
        assert stage.server.asked == asked + 2, "one look in time, and one because of the suspicion"
        stage.server.is_silent = True
        late = asyncio.create_task(stage.write(3.0))
        await stage.world.clock.sleep(1.5)
        await stage.write(1.0)  # something is answered: one failed question is no proof any more
        await late
        await stage.world.clock.sleep(0.5)
        assert stage.health.is_reachable

    play(scene)


def test_nothing_is_asked_because_of_quick_writes():
    async def scene(stage):
        asked, began = stage.server.asked, stage.world.clock.now()
        for _ in range(100):
            await stage.write(0.05)
        passed = stage.world.clock.now() - began
        assert stage.server.asked - asked <= passed / probing.PERIOD + 1

    play(scene)


def test_a_cancelled_or_failed_write_raises_its_own_error_and_is_no_longer_in_flight():
    async def scene(stage):
        with pytest.raises(TimeoutError):
            async with stage.inflight.request():
                raise TimeoutError
        task = asyncio.create_task(stage.write(600))
        await stage.world.clock.sleep(0.1)
        await tasks.cancel(task)
        assert task.cancelled()
        assert len(stage.inflight) == 0

    play(scene)


def test_a_process_that_has_no_time_itself_blames_no_server():
    async def scene(stage):
        stage.server.is_silent, stage.server.lag = True, 2.0
        await stage.world.clock.sleep(60)
        assert stage.health.is_reachable
        stage.server.lag = 0.0
        await stage.world.clock.sleep(20)
        assert not stage.health.is_reachable

    play(scene)


def test_an_unreachable_server_is_unreachable_since_its_last_answer():
    async def scene(stage):
        await stage.world.clock.sleep(probing.PERIOD * 2)
        last = probing.PERIOD * 2
        stage.server.is_silent = True
        await stage.world.clock.sleep(20)
        assert stage.health.error
        assert stage.health.answered == pytest.approx(last)

    play(scene)


def test_a_replaced_server_is_never_reachable_again_whatever_it_answers():
    async def scene(stage):
        stage.health.mark_replaced("it is another cluster")
        await stage.world.clock.sleep(10 * probing.PERIOD)
        assert stage.health.error == "it is another cluster"
        assert [is_troubled for _, is_troubled in stage.changes] == [False, True]

    play(scene)
