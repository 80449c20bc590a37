import asyncio

import simulation
from hansa.control import audit


def added(keys, *, period, until):
    async def main(world):
        seen = []
        second_look = audit.Audit(
            keys, lambda key: seen.append((world.clock.now(), key)), period=period, clock=world.clock
        )
        task = asyncio.create_task(second_look.run())
        await world.clock.sleep(until)
        task.cancel()
        return seen

    return simulation.run(main)


def test_every_key_comes_once_in_each_period_evenly_spread():
    seen = added(lambda: "abcd", period=60, until=121)
    assert seen == [(15 * (n + 1), key) for n, key in enumerate("abcdabcd")]


def test_more_keys_than_steps_go_a_few_at_a_time():
    seen = added(lambda: range(10_000), period=60, until=60.05)
    assert [key for _, key in seen] == list(range(10_000))
    times = [time for time, _ in seen]
    assert max(times.count(time) for time in set(times)) <= 17


def test_the_keys_are_read_again_in_each_period():
    keys = ["a"]

    def changing():
        keys.append("b")
        return list(keys)

    assert [key for _, key in added(changing, period=10, until=21)] == ["a", "b", "a", "b", "b"]


def test_an_audit_of_nothing_waits_for_something():
    assert added(list, period=10, until=1000) == []
