import asyncio
import collections

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import simulation
from hansa.control import controller, queue
from hansa.control.freshness import Freshness, Unlisted
from hansa.kube import errors as api_errors
from hansa.runtime import backoff, errors, tasks


def machine(world, reconcile, *, workers=4, deadline=10.0, **options):
    work = queue.Queue(
        "test",
        clock=world.clock,
        random=world.random,
        metrics=world.metrics,
        group=lambda key: key[0],
        retries=backoff.Backoff(first=1, factor=2, most=60, jitter=0),
        **options,
    )
    run = controller.Controller(
        "test", reconcile, queue=work, metrics=world.metrics, workers=workers, deadline=deadline
    )
    return work, run


def count(world, outcome):
    found = f'hansa_reconciles_total{{controller="test",outcome="{outcome}"}} '
    return next(
        (float(line.removeprefix(found)) for line in world.metrics.text().splitlines() if line.startswith(found)), 0
    )


def test_done_ends_after_comes_again_and_terminal_is_left_alone():
    async def main(world):
        seen = collections.defaultdict(list)

        async def reconcile(key):
            seen[key].append(world.clock.now())
            match key:
                case "done":
                    return controller.Done()
                case "after":
                    return controller.After(30)
                case _:
                    return controller.Terminal("its spec is wrong")

        work, run = machine(world, reconcile)
        async with asyncio.TaskGroup() as group:
            group.create_task(run.run())
            for key in ("done", "after", "terminal"):
                work.add(key)
            await world.clock.sleep(100)
            run.drain()
        return seen, count(world, "terminal")

    seen, terminal = simulation.run(main)
    assert seen == {"done": [0], "after": [0, 30, 60, 90], "terminal": [0]}
    assert terminal == 1


def test_what_raises_is_tried_again_with_growing_waits_until_it_succeeds(caplog):
    async def main(world):
        tries = []

        async def reconcile(key):
            tries.append(world.clock.now())
            if len(tries) == 1:
                raise errors.HansaError("the cluster is away")
            if len(tries) <= 3:
                raise ValueError("a bug")
            return controller.Done()

        work, run = machine(world, reconcile)
        async with asyncio.TaskGroup() as group:
            group.create_task(run.run())
            work.add("a")
            await world.clock.sleep(100)
            run.drain()
        return tries, count(world, "error"), count(world, "done")

    assert simulation.run(main) == ([0, 1, 3, 7], 3, 1)
    expected, bug, _ = [record for record in caplog.records if record.message.startswith("reconcile failed")]
    assert expected.error == "the cluster is away"
    assert not expected.exc_info
    assert bug.exc_info[0] is ValueError


def test_a_server_that_asks_us_to_wait_is_not_asked_before():
    async def main(world):
        tries = []

        async def reconcile(key):
            tries.append(world.clock.now())
            if len(tries) == 1:
                throttled = api_errors.Throttled("too many requests")
                throttled.retry_after = 20.0
                raise throttled
            return controller.Done()

        work, run = machine(world, reconcile)
        async with asyncio.TaskGroup() as group:
            group.create_task(run.run())
            work.add("a")
            await world.clock.sleep(100)
            run.drain()
        return tries

    assert simulation.run(main) == [0, 20]


def test_a_reconcile_that_hangs_ends_at_its_deadline_and_is_tried_again(caplog):
    async def main(world):
        starts = []

        async def reconcile(key):
            starts.append(world.clock.now())
            await asyncio.sleep(10**9 if len(starts) == 1 else 0)
            return controller.Done()

        work, run = machine(world, reconcile)
        async with asyncio.TaskGroup() as group:
            group.create_task(run.run())
            work.add("a")
            await world.clock.sleep(100)
            run.drain()
        return starts, count(world, "deadline")

    assert simulation.run(main) == ([0, 11], 1)
    [late] = [record for record in caplog.records if record.message == "reconcile exceeded its deadline"]
    assert (late.deadline_seconds, late.retry_in_seconds) == (10, 1)


def test_a_drain_finishes_what_is_in_hand_and_begins_nothing():
    async def main(world):
        began, finished = [], []

        async def reconcile(key):
            began.append(key)
            await asyncio.sleep(5)
            finished.append(key)
            return controller.Done()

        work, run = machine(world, reconcile, workers=2)
        task = asyncio.create_task(run.run())
        for key in "abcd":
            work.add(key)
        await world.clock.sleep(1)
        run.drain()
        await task
        return began, sorted(finished), world.clock.now()

    assert simulation.run(main) == (["a", "b"], ["a", "b"], 5)


def test_a_key_in_hand_when_the_controller_is_cancelled_is_worked_on_by_the_next_run():
    async def main(world):
        finished = []

        async def reconcile(key):
            await asyncio.sleep(5)
            finished.append(key)
            return controller.Done()

        work, run = machine(world, reconcile)
        task = asyncio.create_task(run.run())
        work.add("a")
        await world.clock.sleep(1)
        await tasks.cancel(task)
        assert finished == []
        again = asyncio.create_task(run.run())
        await world.clock.sleep(10)
        run.drain()
        await again
        return finished

    assert simulation.run(main) == ["a"]


def test_a_reconciler_that_never_waits_does_not_starve_others():
    async def main(world):
        async def reconcile(key):
            work.add(key)
            return controller.Done()

        work, run = machine(world, reconcile)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(run.run())
            work.add("a")
            for _ in range(100):
                await asyncio.sleep(0)
            run.drain()
            await task
        return count(world, "done")

    assert 10 < simulation.run(main) < 1000


def test_a_group_whose_work_hangs_never_takes_all_workers():
    async def main(world):
        finished = []

        async def reconcile(key):
            await asyncio.sleep(10**9 if key[0] == "dead" else 0.1)
            finished.append((key, world.clock.now()))
            return controller.Done()

        work, run = machine(world, reconcile, workers=4, width=2, deadline=60)
        async with asyncio.TaskGroup() as group:
            group.create_task(run.run())
            for number in range(100):
                work.add(("dead", number))
            await world.clock.sleep(1)
            for number in range(10):
                work.add(("alive", number))
            await world.clock.sleep(1)
            run.drain()
        return finished

    finished = simulation.run(main)
    assert [key for key, _ in finished] == [("alive", number) for number in range(10)]
    assert finished[-1][1] == pytest.approx(1.5)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 8))
def test_whatever_happens_no_key_has_two_workers_and_the_last_change_of_each_is_seen(seed, workers):
    """Random changes, failures, delays and slowness; the reconciler copies a key's state, as real ones do."""

    async def main(world):
        random, state, copy, busy, doubled = world.random, {}, {}, set(), []

        async def reconcile(key):
            if key in busy:
                doubled.append(key)
            busy.add(key)
            try:
                seen = state[key]
                await asyncio.sleep(random.choice([0, 0, 0.5, 20]))
                if random.random() < 0.3:
                    raise ValueError("broken")
                copy[key] = seen
            finally:
                busy.discard(key)
            return random.choice([controller.Done(), controller.After(3), controller.Terminal("no")])

        work, run = machine(world, reconcile, workers=workers, width=random.choice([1, 2, 8]))
        async with asyncio.TaskGroup() as group:
            group.create_task(run.run())
            for number in range(200):
                key = (random.choice("ab"), random.randrange(5))
                state[key] = number
                work.add(key)
                await asyncio.sleep(random.choice([0, 0, 0.1, 5]))
            await world.clock.sleep(10_000)
            run.drain()
        assert copy == state
        assert not doubled

    simulation.run(main, seed)


def test_tenants_whose_servers_never_answer_hold_no_worker_of_others():
    async def main(world):
        done = []

        async def reconcile(key):
            await asyncio.sleep(10 if key[0] < 64 else 0.01)
            done.append((world.clock.now(), key))
            return controller.Done()

        work, run = machine(world, reconcile, workers=256, width=32, deadline=60.0)
        async with asyncio.TaskGroup() as group:
            group.create_task(run.run())
            for key in [(tenant, number) for tenant in range(64) for number in range(200)]:
                work.add(key)
            for second in range(1, 30):
                await world.clock.sleep(1)
                work.add((99, second))
            run.drain()
        late = max(when - key[1] for when, key in done if key[0] == 99)
        stalled = sum(1 for when, key in done if key[0] < 64 and when > 29)  # those in progress at the drain
        return late, stalled

    late, stalled = simulation.run(main)
    assert late <= 1.1  # a first burst is known to be slow after a second
    assert stalled <= 64 * 2


def test_a_controller_with_one_worker_stays_alone():
    async def main(world):
        most, running = 0, 0

        async def reconcile(key):
            nonlocal most, running
            running += 1
            most = max(most, running)
            await asyncio.sleep(5)
            running -= 1
            return controller.Done()

        work, run = machine(world, reconcile, workers=1)
        async with asyncio.TaskGroup() as group:
            group.create_task(run.run())
            for key in ("a", "b", "c"):
                work.add(key)
            await world.clock.sleep(20)
            run.drain()
        return most

    assert simulation.run(main) == 1


def test_no_worker_takes_the_place_of_a_reconcile_that_ends_with_its_controller():
    async def main(world):
        problems = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))

        async def reconcile(_key):
            try:
                await asyncio.sleep(100)
            finally:
                await asyncio.sleep(5)  # such as an answer that is waited for
            return controller.Done()

        work, run = machine(world, reconcile)
        running = asyncio.create_task(run.run())
        work.add("a")
        await world.clock.sleep(0.5)
        running.cancel()
        await asyncio.wait([running])
        return running.cancelled(), problems

    assert simulation.run(main) == (True, [])


def test_a_controller_that_waits_for_its_caches_is_drained_at_once():
    async def main(world):
        async def reconcile(_key):
            return controller.Done()

        never = Freshness("pods", clock=world.clock, patience=30.0)
        listed = Freshness("nodes", clock=world.clock, patience=30.0)
        listed.synced()
        _, run = machine(world, reconcile)
        with pytest.raises(Unlisted, match="pods not listed within 5 s: not listed yet"):
            await run.synced((listed, never), within=5)
        waiting = asyncio.create_task(run.synced((listed, never), within=60))
        assert await run.synced([listed], within=60)
        before = world.clock.now()
        run.drain()
        return await waiting, world.clock.now() - before

    assert simulation.run(main) == (False, 0)
