"""The kubelet API of all virtual nodes of one process: a listening socket, and a server, for each node.

Nodes share an address, and a request for metrics names no pod: each node is known by its port.
"""

import asyncio
import errno
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hansa.kubelet.access import NodeAccess
from hansa.kubelet.certificates import Serving
from hansa.kubelet.node import Node
from hansa.kubelet.node_pages import NodePages
from hansa.kubelet.pods import LinkedPods
from hansa.kubelet.server import Server
from hansa.kubelet.usage.node_usage import NodeUsage
from hansa.runtime import clock, metrics, tasks
from hansa.runtime.errors import HansaError


class Endpoint(NamedTuple):
    """Where API servers reach the kubelet API of a node."""

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class _Served:
    listening: socket.socket
    task: asyncio.Task[None]


class NodeServers:
    """The servers by node. `here` is the address at which API servers reach this process."""

    def __init__(
        self,
        here: str,
        *,
        serving: Serving,
        access: NodeAccess,
        pods: LinkedPods,
        supervisor: tasks.Supervisor,
        clock: clock.Clock,
        metrics: metrics.Registry,
    ) -> None:
        self._here, self._serving, self._access, self._pods = here, serving, access, pods
        self._supervisor, self._clock = supervisor, clock
        self._served: dict[str, _Served] = {}
        self._calls = metrics.counter(
            "hansa_kubelet_calls_total", "Calls of the kubelet API of virtual nodes.", labels=["action", "answer"]
        )

    def add(self, node: str, *, address: str = "", port: int = 0) -> Endpoint:
        """Serve a node at an address that this machine need not have itself; port 0 takes any free port."""
        if node in self._served:
            raise HansaError(f"the kubelet API of node {node} is served already: use another name for one of the nodes")
        listening = _listening(node, tuple(dict.fromkeys((address or self._here, self._here))), port)
        pages = NodePages(node, self._pods, NodeUsage(node, self._pods, clock=self._clock))
        handler = Node(node, self._access, self._pods, pages, self._calls)
        server = Server(node, listening, self._serving, handler.handle, distrusted=handler.distrusted)
        self._served[node] = _Served(listening, self._supervisor.start("kubelet-api", server.run, node=node))
        return Endpoint(address or self._here, int(listening.getsockname()[1]))

    async def remove(self, node: str) -> None:
        """Stop to serve a node; its connections end."""
        served = self._served.pop(node)
        await tasks.cancel(served.task)
        served.listening.close()

    async def close(self) -> None:
        """Stop to serve all nodes."""
        for node in tuple(self._served):
            await self.remove(node)


def _listening(node: str, addresses: Sequence[str], port: int) -> socket.socket:
    for address in addresses:
        try:
            return socket.create_server((address, port), family=socket.AF_INET6 if ":" in address else socket.AF_INET)
        except OSError as error:
            if error.errno == errno.EADDRNOTAVAIL and address != addresses[-1]:
                continue  # the address at which others reach this machine need not be one of its own
            raise HansaError(
                f"cannot serve the kubelet API of node {node} on {address} port {port}"
                f" ({error.strerror or error}): set another KUBELET_PORT"
            ) from None
    raise ValueError("no address")
