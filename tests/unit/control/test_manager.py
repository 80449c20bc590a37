import asyncio

import simulation
from hansa.control import controller, manager, queue
from hansa.runtime import errors


def make(world, **options):
    return manager.Manager(clock=world.clock, random=world.random, metrics=world.metrics, **options)


def forever():
    return asyncio.sleep(10**9)


def recording(events, name, *, work=forever):
    async def run():
        events.append(f"{name} starts")
        try:
            await work()
        finally:
            events.append(f"{name} ends")

    return manager.Component(name, run)


def test_a_failed_part_starts_again_without_the_others():
    async def main(world):
        events, program = [], make(world)

        async def fail():
            await asyncio.sleep(10)
            raise ValueError("broken")

        program.serve(recording(events, "steady"))
        program.serve(recording(events, "shaky", work=fail))
        running = asyncio.create_task(program.run())
        await world.clock.sleep(35)
        program.stop()
        await running
        return events, world.metrics.text()

    events, text = simulation.run(main)
    assert events.count("steady starts") == 1
    assert events.count("shaky starts") == 4
    assert 'hansa_task_failures_total{task="shaky"} 3' in text


def test_at_the_end_work_is_finished_first_and_then_what_it_stands_on_ends():
    async def main(world):
        events, program = [], make(world, grace=20)

        async def reconcile(key):
            events.append(f"{key} begins")
            await asyncio.sleep(10)
            events.append(f"{key} done")
            return controller.Done()

        work = queue.Queue("q", clock=world.clock, random=world.random, metrics=world.metrics)
        worker = controller.Controller("c", reconcile, queue=work, metrics=world.metrics, workers=1)
        program.serve(recording(events, "cache"))
        program.work(manager.Component("controller", worker.run, drain=worker.drain))
        program.work(recording(events, "audit"))
        running = asyncio.create_task(program.run())
        work.add("a")
        work.add("b")
        await world.clock.sleep(5)
        program.stop()
        await running
        return events, world.clock.now()

    events, time = simulation.run(main)
    assert events == ["cache starts", "audit starts", "a begins", "audit ends", "a done", "cache ends"]
    assert time == 10


def stubborn_program(world, events):
    async def reconcile(key):
        try:
            await asyncio.sleep(1000)
        finally:
            events.append(world.clock.now())

    work = queue.Queue("q", clock=world.clock, random=world.random, metrics=world.metrics)
    worker = controller.Controller("c", reconcile, queue=work, metrics=world.metrics, workers=1, deadline=5000)
    program = make(world, grace=20)
    program.work(manager.Component("controller", worker.run, drain=worker.drain))
    work.add("a")
    return program


def test_work_that_takes_longer_than_the_grace_is_cancelled():
    async def main(world):
        events = []
        program = stubborn_program(world, events)
        running = asyncio.create_task(program.run())
        await world.clock.sleep(5)
        program.stop()
        await running
        return events

    assert simulation.run(main) == [25]


def test_a_second_stop_waits_no_longer():
    async def main(world):
        events = []
        program = stubborn_program(world, events)
        running = asyncio.create_task(program.run())
        await world.clock.sleep(5)
        program.stop()
        await world.clock.sleep(1)
        program.stop()
        await running
        return events

    assert simulation.run(main) == [6]


def test_it_is_ready_when_all_parts_are_and_a_part_that_gives_up_does_not_hold_the_others():
    async def main(world):
        calls = []
        program = make(world, when_ready=lambda: calls.append(world.clock.now()))

        async def listed():
            await asyncio.sleep(5)

        async def unreachable():
            await asyncio.sleep(30)
            raise errors.HansaError("r2 cannot be reached")

        program.serve(manager.Component("r1", forever, ready=listed))
        program.serve(manager.Component("r2", forever, ready=unreachable))
        before = program.not_ready()
        running = asyncio.create_task(program.run())
        await world.clock.sleep(10)
        half = program.not_ready()
        await world.clock.sleep(30)
        ready = program.not_ready()
        program.stop()
        stopping = program.not_ready()
        await running
        return calls, before, half, ready, stopping

    calls, before, half, ready, stopping = simulation.run(main)
    assert calls == [30]
    assert half == ["r2 is not ready", "the program is starting"]
    assert ready == []
    assert (before, stopping) == (["the program is starting"], ["the program is shutting down"])


def test_parts_come_and_go_while_it_runs():
    async def main(world):
        events, program = [], make(world)
        running = asyncio.create_task(program.run())
        await world.clock.sleep(1)
        guest, worker = recording(events, "guest"), recording(events, "worker")
        program.serve(guest)
        program.work(worker)
        await world.clock.sleep(1)
        await program.remove(guest)
        await program.remove(worker)
        await program.remove(worker)
        gone = list(events)
        program.stop()
        await running
        return gone, events

    gone, events = simulation.run(main)
    assert gone == events == ["guest starts", "worker starts", "guest ends", "worker ends"]


def test_work_runs_only_while_leading_and_begins_anew_with_the_next_reign():
    async def main(world):
        events, program = [], make(world)

        async def lead(work):
            for _ in range(2):
                await asyncio.sleep(10)
                task = asyncio.create_task(work())
                await asyncio.sleep(5)
                task.cancel()
                await asyncio.wait([task])
            await forever()

        program.serve(recording(events, "cache"))
        program.work(recording(events, "audit"))
        running = asyncio.create_task(program.run(lead))
        await world.clock.sleep(12)
        program.work(recording(events, "late"))
        await world.clock.sleep(100)
        program.stop()
        await running
        return events

    reign = ["audit starts", "late starts", "audit ends", "late ends"]
    assert simulation.run(main) == ["cache starts", *reign, *reign, "cache ends"]
