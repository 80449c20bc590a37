"""The base of every program: a manager, and factories of components with their common arguments."""

import asyncio
import os
import random as randomness
import secrets
import socket
import sys
from collections.abc import Awaitable, Callable, Iterable
from typing import TypedDict

import hansa
from hansa.control.election import Election
from hansa.control.health_server import HealthServer
from hansa.control.informer import Informers
from hansa.control.manager import Component, Lead, Manager
from hansa.engine import write_gate
from hansa.engine.cluster import Budgets, Cluster
from hansa.engine.registry import Routes
from hansa.engine.syncer import Syncer
from hansa.engine.write_gate import WriteGate
from hansa.kube import resources, sending
from hansa.kube.client import Client
from hansa.kube.resource import Resource
from hansa.model.mode import Mode
from hansa.model.placement import Decisions
from hansa.runtime import clock, metrics
from hansa.runtime.errors import HansaError

UPPER = "upper"  # the name of the upper cluster in programs that have only one


class CommonArguments(TypedDict):
    """The keyword arguments that almost every component takes."""

    clock: clock.Clock
    random: randomness.Random
    metrics: metrics.Registry


def new_loop() -> asyncio.AbstractEventLoop:
    """The event loop of long-running programs: uvloop on Linux."""
    if sys.platform == "linux":
        import uvloop  # noqa: PLC0415 - other systems don't have it

        return uvloop.new_event_loop()
    return asyncio.new_event_loop()


class Program:
    """The manager of one program, and the common arguments of its components."""

    def __init__(self) -> None:
        self.clock = clock.SystemClock()
        self.random = randomness.Random()  # noqa: S311 - spreads load, guards nothing
        self.metrics = metrics.Registry()
        self.manager = Manager(**self.common())
        self._election: Election | None = None
        self.gate: WriteGate = write_gate.Leading(self.may_write)

    def common(self) -> CommonArguments:
        """The keyword arguments that almost every component takes."""
        return {"clock": self.clock, "random": self.random, "metrics": self.metrics}

    def informers(self, cluster: str, client: Client) -> Informers:
        """The informers of a cluster."""
        return Informers(cluster, client, supervisor=self.manager.supervisor, **self.common())

    def cluster(
        self,
        name: str,
        client: Client,
        *,
        namespaces: frozenset[str] | None = None,
        is_verified: bool = False,
        budgets: Budgets | None = None,
    ) -> Cluster:
        """A cluster with its informers and health; `namespaces` are those that its credentials may read, None: all."""
        return Cluster(
            name,
            client,
            supervisor=self.manager.supervisor,
            namespaces=namespaces,
            is_verified=is_verified,
            budgets=budgets,
            **self.common(),
        )

    def syncer(
        self,
        mode: Mode,
        registry: Routes,
        *,
        watch_all: Iterable[Resource] = (resources.PODS,),
        decisions: Decisions | None = None,
    ) -> Syncer:
        """A syncer for one mode."""
        return Syncer(mode, registry, watch_all=watch_all, decisions=decisions, gate=self.gate, **self.common())

    def may_write(self) -> bool:
        """Whether this process is the leader, or runs without leader election."""
        return self._election is None or self._election.is_leading

    def elect(self, name: str, cluster: Cluster, *, namespace: str) -> Lead:
        """Create the leader election with a Lease of this name; the result is an argument of the manager's `run`."""
        return self.lead(self.election(name, cluster.client, cluster.informers, namespace=namespace))

    def lead(self, election: Election) -> Lead:
        """Run workers while this process leads. Their writes are sent only while it does, also after a freeze."""
        self._election = election

        async def lead(work: Callable[[], Awaitable[None]]) -> None:
            async def work_while_leading() -> None:
                with sending.only_while(self.may_write):  # the tasks of workers take a copy of the context
                    await work()

            await election.lead(work_while_leading)

        return lead

    def election(
        self, name: str, client: Client, informers: Informers, *, namespace: str, prefix: str = ""
    ) -> Election:
        """A leader election with a Lease of this name; the identity of this process begins with `prefix`."""
        return Election(
            name,
            namespace=namespace,
            identity=f"{prefix}{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}",
            client=client,
            informers=informers,
            **self.common(),
        )

    def serve_health(self, where: str) -> None:
        """Serve /healthz, /readyz and /metrics at HOST:PORT."""
        host, colon, port = where.rpartition(":")
        if not colon or not port.isdecimal():
            raise HansaError(f'--metrics-addr "{where}" is invalid: use HOST:PORT, e.g. 127.0.0.1:8080')
        health = HealthServer(
            metrics=self.metrics, not_ready=self.manager.not_ready, host=host.strip("[]"), port=int(port)
        )
        self.manager.serve(Component("health", health.run))


def agent(command: str) -> str:
    """The User-Agent of a command."""
    return f"hansa-{command}/{hansa.__version__}"
