"""The rights of the manifests; run last, for what the tests of the folder did."""

import pytest

from eventually import eventually

pytestmark = pytest.mark.timeout(400)


async def test_the_rights_of_the_manifests_are_enough_and_all_needed(scheduler):
    """For what the tests before it did."""
    await scheduler.stop()
    for account in scheduler.accounts:
        await eventually(account.ended)
        assert (account.refused(), account.unused()) == (set(), set())
