import asyncio
import datetime

import simulation
from hansa.runtime import clock


async def test_the_system_clock_goes_forward_and_knows_the_date_in_utc():
    system = clock.SystemClock()
    before, wall = system.now(), system.wall()
    await system.sleep(0.01)
    assert system.now() - before >= 0.009
    assert wall.tzinfo is datetime.UTC
    assert system.wall() >= wall


def test_an_hour_of_simulated_time_passes_at_once_and_in_order():
    async def main(world):
        seen = []

        async def after(seconds):
            await world.clock.sleep(seconds)
            seen.append((world.clock.now(), seconds))

        await asyncio.gather(after(3600), after(1), after(60))
        return seen, world.clock.wall()

    seen, wall = simulation.run(main)
    assert seen == [(1, 1), (60, 60), (3600, 3600)]
    assert wall - simulation.START == datetime.timedelta(hours=1)
