"""Clusters without a scheduler and controllers: nodes and pods are as a test makes them."""

import contextlib

import pytest

import stock_scheduler


@pytest.fixture
def bare_cluster(fleet):
    """Creates such a cluster for a block."""

    @contextlib.asynccontextmanager
    async def making():
        async with stock_scheduler.bare_clusters(fleet, "verdicts") as [made]:
            yield made

    return making
