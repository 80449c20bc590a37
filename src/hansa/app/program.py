"""What every program is made of: a manager, and clusters that are reached with somebody's credentials."""

import asyncio
import os
import random as randomness
import secrets
import socket
import sys
from collections.abc import Iterable
from typing import TypedDict

import hansa
from hansa.control.election import Election
from hansa.control.health_server import HealthServer
from hansa.control.informer import Informers
from hansa.control.manager import Component, Lead, Manager
from hansa.engine.cluster import Cluster
from hansa.engine.registry import Routes
from hansa.engine.syncer import Syncer
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.resource import Resource
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
        self._election: Election | None = None

    def given(self) -> Given:
        """What almost every component takes."""
        return {"clock": self.clock, "random": self.random, "metrics": self.metrics}

    def informers(self, cluster: str, client: Client) -> Informers:
        """The caches of a cluster."""
        return Informers(cluster, client, supervisor=self.manager.supervisor, **self.given())

    def cluster(self, name: str, client: Client) -> Cluster:
        """A member of the league."""
        return Cluster(name, client, supervisor=self.manager.supervisor, **self.given())

    def syncer(self, mode: Mode, registry: Routes, *, whole: Iterable[Resource] = (resources.PODS,)) -> Syncer:
        """The engine with one mode's table."""
        return Syncer(mode, registry, whole=whole, may_write=self.may_write, **self.given())

    def may_write(self) -> bool:
        """Whether no other process can be at work now."""
        return self._election is None or self._election.is_leading

    def elect(self, name: str, cluster: Cluster, *, namespace: str) -> Lead:
        """Let one of many processes work, by a Lease of this name; give the answer to the manager."""
        self._election = Election(
            name,
            namespace=namespace,
            identity=f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}",
            client=cluster.client,
            informers=cluster.informers,
            **self.given(),
        )
        return self._election.lead

    def serve_health(self, where: str) -> None:
        """Answer /healthz, /readyz and /metrics at HOST:PORT."""
        host, colon, port = where.rpartition(":")
        if not colon or not port.isdecimal():
            raise HansaError(f'--metrics-addr "{where}" is not of the form HOST:PORT')
        health = HealthServer(
            metrics=self.metrics, unready=self.manager.troubles, host=host.strip("[]"), port=int(port)
        )
        self.manager.serve(Component("health", health.run))


def agent(command: str) -> str:
    """How we call ourselves towards API servers."""
    return f"hansa-{command}/{hansa.__version__}"
