import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import simulation
from hansa.control import queue
from hansa.runtime import backoff, errors

KEYS = st.tuples(st.sampled_from("abc"), st.integers(0, 4))
WIDTH = 3


def make(world, **options):
    return queue.Queue(
        "test", clock=world.clock, random=world.random, metrics=world.metrics, group=lambda key: key[0], **options
    )


class QueueMachine(RuleBasedStateMachine):
    """Any sequence of adds, delays, takes, cancelled takes and passing time, compared with sets."""

    @initialize()
    def begin(self):
        self.runner = asyncio.Runner(loop_factory=simulation.SimulatedLoop)
        self.world = simulation.World()
        self.dirty, self.working, self.due = set(), set(), {}
        self.queue = make(self.world, width=WIDTH, credit=10**6)  # never a backlog: the width stays

    def do(self, coroutine):
        return self.runner.run(coroutine)

    def takeable(self):
        busy = {group: sum(1 for key in self.working if key[0] == group) for group in "abc"}
        return {key for key in self.dirty - self.working if busy[key[0]] < WIDTH}

    @rule(key=KEYS)
    def add(self, key):
        async def act():
            self.queue.add(key)

        self.do(act())
        self.dirty.add(key)

    @rule(key=KEYS, seconds=st.integers(1, 100))
    def add_after(self, key, seconds):
        async def act():
            self.queue.add_after(key, seconds)
            return self.world.clock.now()

        time = self.do(act()) + seconds
        self.due[key] = min(time, self.due.get(key, time))

    @rule(seconds=st.integers(1, 60))
    def time_passes(self, seconds):
        async def act():
            await self.world.clock.sleep(seconds + 0.001)
            return self.world.clock.now()

        now = self.do(act())
        for key in [key for key, time in self.due.items() if time <= now]:
            del self.due[key]
            self.dirty.add(key)

    @precondition(lambda self: self.takeable())
    @rule()
    def take(self):
        key = self.do(self.queue.get())
        assert key in self.takeable(), "not added, in another worker's hands, or over its group's width"
        self.dirty.remove(key)
        self.working.add(key)

    @precondition(lambda self: not self.takeable())
    @rule()
    def nothing_to_take(self):
        async def act():
            getters = [asyncio.create_task(self.queue.get()) for _ in range(2)]
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert not any(getter.done() for getter in getters)
            for getter in getters:
                getter.cancel()
            await asyncio.wait(getters)

        self.do(act())

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def done(self, data):
        self.finish(data.draw(st.sampled_from(sorted(self.working))))

    def finish(self, key):
        async def act():
            self.queue.done(key)

        self.do(act())
        self.working.remove(key)

    @invariant()
    def depth_is_what_waits(self):
        if hasattr(self, "queue"):
            assert len(self.queue) == len(self.dirty - self.working)

    def teardown(self):
        """Nothing is lost: whatever was asked for is handed out in the end."""
        if not hasattr(self, "queue"):
            return
        with self.runner:
            self.time_passes(seconds=1000)
            while self.working or self.dirty:
                if self.takeable():
                    self.take()
                else:
                    self.finish(min(self.working))
            assert not self.due


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_a_key_added_while_a_worker_is_on_it_comes_again_after_it():
    async def main(world):
        q = make(world)
        q.add(("a", 1))
        first = await q.get()
        q.add(("a", 1))
        q.add(("a", 1))
        waiting = asyncio.create_task(q.get())
        await world.clock.sleep(1)
        assert not waiting.done()
        q.done(first)
        assert await waiting == ("a", 1)
        assert len(q) == 0

    simulation.run(main)


def test_many_waiting_workers_each_get_a_key_even_if_one_is_cancelled_at_that_moment():
    async def main(world):
        q = make(world)
        getters = [asyncio.create_task(q.get()) for _ in range(3)]
        await asyncio.sleep(0)
        q.add(("a", 1))
        q.add(("a", 2))
        getters[0].cancel()  # it was woken already, and must pass its turn on
        assert {await getters[1], await getters[2]} == {("a", 1), ("a", 2)}

    simulation.run(main)


def test_of_two_delays_the_earlier_wins_and_the_key_comes_once():
    async def main(world):
        q = make(world)
        for seconds in (50, 5, 20):
            q.add_after(("a", 1), seconds)
        await q.get()
        assert world.clock.now() == pytest.approx(5)
        q.done(("a", 1))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1000):
                await q.get()

    simulation.run(main)


def test_a_key_that_fails_again_and_again_waits_longer_each_time_and_alone():
    async def main(world):
        q = make(world, retries=backoff.Backoff(first=1, factor=2, most=8, jitter=0))
        delays = [q.retry(("a", 1)) for _ in range(5)]
        assert q.retry(("a", 2)) == 1
        q.forget(("a", 1))
        return [*delays, q.retry(("a", 1))]

    assert simulation.run(main) == [1, 2, 4, 8, 8, 1]


def test_a_closed_queue_sends_waiting_workers_home_and_takes_nothing_more():
    async def main(world):
        q = make(world)
        getters = [asyncio.create_task(q.get()) for _ in range(2)]
        q.add_after(("a", 2), 5)
        await world.clock.sleep(1)
        q.close()
        q.add(("a", 1))
        q.add_after(("a", 1), 1)
        await world.clock.sleep(10)
        return [*await asyncio.gather(*getters), await q.get(), len(q)]

    assert simulation.run(main) == [None, None, None, 0]


def test_a_worker_cannot_be_done_with_what_it_does_not_hold():
    async def main(world):
        with pytest.raises(errors.HansaError, match="was not taken"):
            make(world).done(("a", 1))

    simulation.run(main)


def test_outdated_delays_do_not_pile_up():
    async def main(world):
        q = make(world)
        for number in range(10_000):
            q.add_after(("a", 1), 10**6 - number)
        return len(q._delays._heap)

    assert simulation.run(main) < 100


def test_depth_waiting_and_work_are_measured():
    async def main(world):
        q = make(world)
        q.add(("a", 1))
        q.add(("a", 2))
        q.add_after(("b", 1), 100)
        await world.clock.sleep(3)
        key = await q.get()
        await world.clock.sleep(2)
        running = world.metrics.text()
        q.done(key)
        return running, world.metrics.text()

    running, after = simulation.run(main)
    assert 'hansa_queue_depth{group="a",queue="test"} 1' in running
    assert 'hansa_queue_delayed{queue="test"} 1' in running
    assert 'hansa_queue_working{queue="test"} 1' in running
    assert 'hansa_queue_longest_work_seconds{queue="test"} 2' in running
    assert 'hansa_queue_wait_seconds_sum{queue="test"} 3' in after
    assert 'hansa_queue_work_seconds_sum{queue="test"} 2' in after


def test_a_queue_that_is_closed_is_no_longer_measured():
    async def main(world):
        keys = make(world)
        keys.add(("a", 1))
        assert 'hansa_queue_depth{group="a",queue="test"} 1' in world.metrics.text()
        keys.close()
        assert "hansa_queue_depth{" not in world.metrics.text()

    simulation.run(main)


def test_a_queue_is_busy_until_a_moment_after_its_last_work():
    async def main(world):
        q, seen = make(world), []

        def look():
            seen.append(q.is_busy)

        look()
        q.add(("a", 1))
        look()
        await q.get()
        look()
        q.done(("a", 1))
        look()
        await world.clock.sleep(queue.CALM)
        look()
        return seen

    assert simulation.run(main) == [False, True, True, True, False]


def test_the_group_is_computed_once_for_each_add_and_a_key_without_one_is_dropped():
    async def main(world):
        groups, asked = {"a": "lane", "gone": None}, []

        def group(key):
            asked.append(key)
            return groups[key]

        work = queue.Queue("test", clock=world.clock, random=world.random, metrics=world.metrics, group=group)
        for key in ("a", "a", "gone"):
            work.add(key)
        assert asked == ["a", "gone"]
        assert await work.get() == "a"
        work.add("a")
        work.done("a")
        assert await work.get() == "a"
        assert asked == ["a", "gone", "a"]
        work.retry("gone")
        await world.clock.sleep(1)
        assert len(work) == 0
        assert not work._failures

    simulation.run(main)


def test_a_key_without_a_readable_group_stops_neither_delayed_keys_nor_itself():
    async def main(world):
        def group(key):
            if key == "malformed":
                raise ValueError("its nodeName is a number")
            return key

        work = queue.Queue("test", clock=world.clock, random=world.random, metrics=world.metrics, group=group)
        work.add_after("malformed", 1)
        work.add_after("sound", 1)
        work.add_after("later", 2)
        await world.clock.sleep(3)
        return {await work.get() for _ in range(3)}

    assert simulation.run(main) == {"malformed", "sound", "later"}
