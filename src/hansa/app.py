"""Settings become components, and components one program: the only place where all parts are put together."""

import asyncio
import contextlib
import gc
import hashlib
import logging
import os
import random as randomness
import secrets
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypedDict

import hansa
from hansa.admission import configuration, self_made, serving
from hansa.admission.settings import Settings as WebhookSettings
from hansa.admission.webhook import Webhook
from hansa.control.election import Election
from hansa.control.health import Health
from hansa.control.informer import Informers, Scope
from hansa.control.knowledge import Unlisted
from hansa.control.manager import Lead, Manager, Part
from hansa.engine.cluster import REQUEST_DEADLINE, Cluster
from hansa.engine.registry import Registry, Route
from hansa.engine.syncer import Syncer
from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.credentials import Credentials, incluster, kubeconfig
from hansa.model.mode import Mode
from hansa.modes import tensile
from hansa.modes.tensile_settings import Controllers, Source
from hansa.modes.tensile_settings import Settings as TensileSettings
from hansa.nodes import address
from hansa.nodes.controller import VirtualNodes
from hansa.nodes.lower import LowerCluster
from hansa.runtime import clock, metrics, tasks
from hansa.runtime.errors import HansaError

log = logging.getLogger(__name__)
UPPER = "upper"
FIRST_LISTS = 60.0  # seconds, after which the program counts as ready although a cluster is away
Clusters = Mapping[str, Cluster]


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

    def syncer(self, mode: Mode, registry: Registry) -> Syncer:
        """The engine with one mode's table."""
        return Syncer(mode, registry, **self.given())

    def serve_health(self, where: str) -> None:
        """Answer /healthz, /readyz and /metrics at HOST:PORT."""
        host, colon, port = where.rpartition(":")
        if not colon or not port.isdecimal():
            raise HansaError(f'--metrics-addr "{where}" is not of the form HOST:PORT')
        health = Health(metrics=self.metrics, unready=self.manager.troubles, host=host.strip("[]"), port=int(port))
        self.manager.serve(Part("health", health.run))


async def webhook(settings: WebhookSettings) -> None:
    """Run the admission webhook of an upper cluster until a signal ends it."""
    program = Program()
    access = await credentials(Source(settings.kubeconfig))
    listening = serving.listen(settings.host, settings.port)
    port = listening.getsockname()[1]
    with listening, _webhook_pair(settings, program.clock) as (pair, ca):
        async with Client(access, user_agent=agent("webhook")) as client:
            wanted = configuration.of(
                settings.address(port), ca=ca, failure_policy=settings.failure_policy, name=settings.name
            )
            parts = Webhook(
                client,
                program.informers(UPPER, client),
                steering_keys=settings.steering_keys,
                tls=serving.Tls(pair),
                listening=listening,
                wanted=wanted if settings.is_installed else None,
            )
            program.manager.serve(Part("webhook", parts.serve))
            program.manager.serve(Part("configuration", parts.install))
            await program.manager.run()


@contextlib.contextmanager
def _webhook_pair(settings: WebhookSettings, clock: clock.Clock) -> Iterator[tuple[serving.Pair, bytes]]:
    """The certificate to serve with, and what the API server must trust for that."""
    if settings.certificate and settings.key:
        yield serving.Pair(settings.certificate, settings.key, settings.client_ca), settings.ca_bundle
    else:
        with self_made.pair(settings.names(), clock.wall(), client_ca=settings.client_ca) as made:
            yield made


async def virtual_node(settings: TensileSettings, *, metrics_address: str = "", election_namespace: str = "") -> None:
    """Serve virtual nodes until a signal ends it."""
    program = Program()
    async with contextlib.AsyncExitStack() as stack:

        async def joined(name: str, source: Source) -> Cluster:
            access = await credentials(source)
            client = Client(access, user_agent=agent("virtual-node"), deadline=REQUEST_DEADLINE)
            return program.cluster(name, await stack.enter_async_context(client))

        clusters = {UPPER: await joined(UPPER, settings.upper)}
        for lower in settings.lowers:
            if lower.node.lower in clusters:
                raise HansaError(f'a lower cluster cannot be named "{UPPER}": that is what we call the upper one')
            clusters[lower.node.lower] = await joined(lower.node.lower, lower.source)
        pods = program.syncer(tensile.mode(settings), _registry(clusters, _down(settings)))
        manager = program.manager
        manager.work(Part("pods", pods.run, pods.drain, ready=lambda: _first_lists(clusters)))
        manager.work(Part("virtual nodes", lambda: _serve_nodes(settings, clusters, program)))
        if Controllers.VOLUMES in settings.controllers:
            manager.work(Part("volumes", lambda: _show_volumes(settings, clusters, program)))
        if metrics_address:
            program.serve_health(metrics_address)
        await manager.run(*_election(settings, election_namespace, clusters[UPPER], program))


def _down(settings: TensileSettings) -> list[Route]:
    """Pods and what they need travel down."""
    return [Route(UPPER, one.node.lower, one.link, frozenset({one.node.name})) for one in settings.lowers]


async def _show_volumes(settings: TensileSettings, clusters: Clusters, program: Program) -> None:
    """Volumes that are made below travel up."""
    routes = [Route(one.node.lower, UPPER, one.link) for one in settings.lowers]
    mode = tensile.volumes(await clusters[UPPER].identify())
    await program.syncer(mode, _registry(clusters, routes)).run()


def _registry(clusters: Clusters, routes: Iterable[Route]) -> Registry:
    registry = Registry()
    for cluster in clusters.values():
        registry.join(cluster)
    for route in routes:
        registry.link(route)
    return registry


async def _serve_nodes(settings: TensileSettings, clusters: Clusters, program: Program) -> None:
    """The virtual nodes, as soon as the upper cluster tells which one it is."""
    upper, supervisor = clusters[UPPER], program.manager.supervisor
    upper_id = await upper.identify()
    here = await address.towards((await upper.client.credentials.access()).server)
    nodes = VirtualNodes(upper_id, upper.client, informers=upper.informers, **program.given())
    async with contextlib.AsyncExitStack() as stack:
        for one in settings.lowers:
            lower = LowerCluster(clusters[one.node.lower])
            stack.push_async_callback(lower.close)
            stack.push_async_callback(tasks.cancel, supervisor.start(f"version of {one.node.lower}", lower.run))
            nodes.add(replace(one.node, internal_ip=one.node.internal_ip or here), lower)
        await nodes.run()


async def _first_lists(clusters: Clusters) -> None:
    """Wait until all pods are known. What came with them stays, so that no garbage collection need look at it again."""
    for cluster in clusters.values():
        async with cluster.informers.share(Scope(resources.PODS)) as pods:
            try:
                await pods.knowledge.wait_complete(FIRST_LISTS)
            except Unlisted as error:
                log.warning("goes on without a cluster", extra={"error": str(error)})
    gc.collect()
    gc.freeze()


def _election(settings: TensileSettings, namespace: str, upper: Cluster, program: Program) -> tuple[Lead, ...]:
    """One of many processes with the same nodes works, if that is wanted."""
    if not namespace:
        return ()
    names = ",".join(sorted(lower.node.name for lower in settings.lowers))
    election = Election(
        f"hansa-virtual-node-{hashlib.sha256(names.encode()).hexdigest()[:12]}",
        namespace=namespace,
        identity=f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}",
        client=upper.client,
        informers=upper.informers,
        **program.given(),
    )
    return (election.lead,)


async def credentials(source: Source) -> Credentials:
    """Credentials from a kubeconfig; without one from where kubectl looks, or from the pod that we run in."""
    if source.kubeconfig is not None:
        found = kubeconfig.from_files(source.kubeconfig, context=source.context)
    elif incluster.FOLDER.exists() and "KUBECONFIG" not in os.environ:
        found = incluster.from_pod()
    else:
        found = kubeconfig.from_environment(context=source.context)
    await found.access()  # what cannot be read is told now, not by every part that needs it
    return found


def agent(command: str) -> str:
    """How we call ourselves towards API servers."""
    return f"hansa-{command}/{hansa.__version__}"
