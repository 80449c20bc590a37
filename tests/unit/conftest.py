"""Views without servers."""

import pytest

import simulation
from view_world import World


@pytest.fixture
def play():
    """Runs a function with a world, on simulated time."""

    def run(scene, **options):
        async def main(outer):
            scene(World(outer, **options))

        simulation.run(main)

    return run
