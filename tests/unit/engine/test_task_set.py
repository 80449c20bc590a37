"""Tasks are started and cancelled with the set of wanted ones."""

import asyncio
import types

import simulation
from hansa.engine import task_set
from hansa.runtime import listeners, tasks


class Wanted:
    """Things by name, and listeners for changes."""

    def __init__(self, **things):
        self.things, self.listeners, self.running, self.log = things, listeners.Listeners(), set(), []
        self.registry = types.SimpleNamespace(listen=self.listeners.add)

    def become(self, **things):
        self.things = things
        for notify in self.listeners:
            notify()

    async def run(self, thing):
        self.log.append(thing)
        self.running.add(thing)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self.running.discard(thing)


def play(scene, **things):
    async def main(world):
        given = {"clock": world.clock, "random": world.random, "metrics": world.metrics}
        wanted = Wanted(**things)
        async with tasks.Supervisor(**given) as supervisor:
            tending_task = asyncio.create_task(
                task_set.maintain("thing", lambda: wanted.things, wanted.run, wanted.registry, supervisor=supervisor)
            )
            await asyncio.sleep(0.1)
            await scene(wanted)
            await tasks.cancel(tending_task)
        assert wanted.running == set(), "nothing outlives its owner"

    simulation.run(main)


def test_there_is_one_task_for_each_item_and_none_for_removed_ones():
    async def scene(wanted):
        assert wanted.running == {"one", "two"}
        wanted.become(b="two", c="three")
        await asyncio.sleep(0.1)
        assert wanted.running == {"two", "three"}
        assert wanted.log == ["one", "two", "three"], "who stays is not begun again"

    play(scene, a="one", b="two")


def test_a_thing_that_is_another_one_under_its_name_begins_again():
    async def scene(wanted):
        wanted.become(a="other")
        await asyncio.sleep(0.1)
        assert wanted.running == {"other"}

    play(scene, a="one")


def test_changes_that_come_while_others_end_are_not_missed():
    async def scene(wanted):
        wanted.become(a="second")
        wanted.become(a="third")
        await asyncio.sleep(0)
        wanted.become(a="fourth")
        await asyncio.sleep(0.1)
        assert wanted.running == {"fourth"}

    play(scene, a="first")
