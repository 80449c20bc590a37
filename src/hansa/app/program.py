"""What every program is made of: a manager, and clusters that are reached with somebody's credentials."""

import asyncio
import random as randomness
import sys
from typing import TypedDict

import hansa
from hansa.control.health import Health
from hansa.control.informer import Informers
from hansa.control.manager import Manager, Part
from hansa.engine.cluster import Cluster
from hansa.engine.registry import Routes
from hansa.engine.syncer import Syncer
from hansa.kube.client import Client
from hansa.model.mode import Mode
from hansa.runtime import clock, metrics
from hansa.runtime.errors import HansaError

UPPER = "upper"  # what a program with one upper cluster calls it


class Given(TypedDict):
    """What almost every component takes."""

    clock: clock.Clock
    random: randomness.Random
    metrics: metrics.Registry


def new_loop() -> asyncio.AbstractEventLoop:
    """The event loop of programs that run for long: uvloop where it is there."""
    if sys.platform == "linux":
        import uvloop  # noqa: PLC0415 - other systems don't have it

        return uvloop.new_event_loop()
    return asyncio.new_event_loop()


class Program:
    """What every component is given, and the manager that runs them."""

    def __init__(self) -> None:
        self.clock = clock.SystemClock()
        self.random = randomness.Random()  # noqa: S311 - spreads load, guards nothing
        self.metrics = metrics.Registry()
        self.manager = Manager(**self.given())

    def given(self) -> Given:
        """What almost every component takes."""
        return {"clock": self.clock, "random": self.random, "metrics": self.metrics}

    def informers(self, cluster: str, client: Client) -> Informers:
        """The caches of a cluster."""
        return Informers(cluster, client, supervisor=self.manager.supervisor, **self.given())

    def cluster(self, name: str, client: Client) -> Cluster:
        """A member of the league."""
        return Cluster(name, client, supervisor=self.manager.supervisor, **self.given())

    def syncer(self, mode: Mode, registry: Routes) -> Syncer:
        """The engine with one mode's table."""
        return Syncer(mode, registry, **self.given())

    def serve_health(self, where: str) -> None:
        """Answer /healthz, /readyz and /metrics at HOST:PORT."""
        host, colon, port = where.rpartition(":")
        if not colon or not port.isdecimal():
            raise HansaError(f'--metrics-addr "{where}" is not of the form HOST:PORT')
        health = Health(metrics=self.metrics, unready=self.manager.troubles, host=host.strip("[]"), port=int(port))
        self.manager.serve(Part("health", health.run))


def agent(command: str) -> str:
    """How we call ourselves towards API servers."""
    return f"hansa-{command}/{hansa.__version__}"
