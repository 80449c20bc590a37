"""The kubelet API of all virtual nodes of one process: a listening socket, and a server, for each node."""

import asyncio
import errno
import socket
from collections.abc import Iterable, Sequence

from hansa.kubelet.access import NodeAccess
from hansa.kubelet.certificates import Serving
from hansa.kubelet.node import Node
from hansa.kubelet.pods import LinkedPods
from hansa.kubelet.server import Server
from hansa.runtime import metrics
from hansa.runtime.errors import HansaError


class Listening:
    """The listening sockets of nodes. Nodes may share an address: each is known by its port."""

    def __init__(self) -> None:
        self.sockets: dict[str, socket.socket] = {}

    def add(self, node: str, addresses: Sequence[str], port: int) -> int:
        """Listen for a node on the first of the addresses that this machine has; port 0 takes any free port."""
        made = self.sockets[node] = _listening(node, addresses, port)
        return int(made.getsockname()[1])

    def close(self) -> None:
        """Stop listening."""
        for one in self.sockets.values():
            one.close()


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


def servers(
    listening: Listening,
    *,
    serving: Serving,
    access: NodeAccess,
    pods: LinkedPods,
    metrics: metrics.Registry,
) -> Iterable[Server]:
    """The servers of all nodes."""
    calls = metrics.counter(
        "hansa_kubelet_calls_total", "Calls of the kubelet API of virtual nodes.", labels=["action", "answer"]
    )
    return [
        Server(node, one, serving, Node(node, access, pods, calls).handle) for node, one in listening.sockets.items()
    ]


async def run(servers: Iterable[Server]) -> None:
    """Serve until cancelled."""
    async with asyncio.TaskGroup() as group:
        for one in servers:
            group.create_task(one.run())
