"""Clusters without a scheduler and controllers: nodes and pods are as a test makes them."""

import contextlib
import signal

import pytest

from hansa.local import ClusterSpec
from hansa.programs import components

# Without controllers there are no service accounts, and no one removes the taint that new nodes get.
FLAGS = {"kube-apiserver": ("--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",)}


@pytest.fixture
def bare_cluster(fleet):
    """Creates such a cluster for a block."""

    @contextlib.asynccontextmanager
    async def making():
        [made] = await fleet.up([ClusterSpec("verdicts", scheduler=False, lift_limits=True, flags=FLAGS)])
        made.process(components.CONTROLLERS).signal(signal.SIGKILL)
        yield made
        await fleet.down([made.name])

    return making
