"""The network of the hosts of a state folder: a router in its own network namespace, with a veth pair to each host.

The network has no uplink. Every host is reachable from everywhere in it; pods are reachable from their own cluster and
from joined clusters. There is no record besides the kernel: hosts are found by the names of their network namespaces.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

from hansa.local.machines import addresses, command
from hansa.local.machines.addresses import HOSTS, ROUTER, Networks
from hansa.programs import files

NAMESPACES = Path("/run/netns")
LOCK_SECONDS = 60.0

FILTER = """
table ip hansa {{
    set own {{ type ipv4_addr . ipv4_addr; flags interval; elements = {{ {own} }} }}
    set joined {{ type ipv4_addr; flags interval; }}
    chain forward {{
        type filter hook forward priority filter; policy accept;
        ct state established,related accept
        ip daddr {hosts} accept
        ip saddr . ip daddr @own accept
        ip saddr @joined ip daddr @joined accept
        reject with icmp type admin-prohibited
    }}
}}
"""

ROUTER_SCRIPT = f"""
echo 1 > /proc/sys/net/ipv4/ip_forward
ip link set lo up
ip address replace {ROUTER}/32 dev lo
nft list table ip hansa > /dev/null 2>&1 || nft -f -
"""

LINK_SCRIPT = """
if ! ip -n {host} link show eth0 > /dev/null 2>&1; then
    ip link delete {link} 2> /dev/null || true
    ip link add {link} type veth peer name eth0 netns {host}
fi
ip link set {link} up
ip route replace {address} dev {link}
"""

# A host has a single link, to the router, so that every packet in and out passes the router's filter.
HOST_SCRIPT = f"""
echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables
ip link set lo up
ip address replace {{address}}/32 dev eth0
ip link set eth0 up
ip route replace {ROUTER} dev eth0
ip route replace default via {ROUTER}
"""


@dataclass(frozen=True, slots=True)
class HostNetwork:
    """The network of one state folder. Its hosts are named by their cluster and their index (see `addresses`)."""

    state: Path

    @property
    def prefix(self) -> str:
        """The prefix of all names that belong to this state folder."""
        return f"hansa-{hashlib.sha256(os.fsencode(self.state)).hexdigest()[:8]}"

    @property
    def router(self) -> str:
        """The network namespace of the router."""
        return self.prefix

    def host(self, cluster: str, index: int) -> str:
        """The name of a host's network namespace, and of its control groups if it is a node."""
        return f"{self.prefix}.{cluster}.{index}"

    async def ensure(self, cluster: str, slot: int, *, is_joined: bool, nodes: Iterable[int] = ()) -> None:
        """Create what is missing for a cluster: the router and the hosts of the control plane and the nodes."""
        networks = Networks(slot)
        async with self._lock():
            await self._ensure_router()
            await self._join(networks, is_joined)
            for index in (addresses.CONTROL_PLANE, *nodes):
                await self._ensure_host(self.host(cluster, index), networks, index)

    async def remove_host(self, cluster: str, index: int) -> None:
        """Remove a host from the network, if it exists."""
        async with self._lock():
            await _delete(self.host(cluster, index))

    async def remove(self, cluster: str) -> None:
        """Remove all hosts of a cluster, and the router after the last one."""
        async with self._lock():
            for name in _names(f"{self.prefix}.{cluster}."):
                await _delete(name)
            if _names(self.prefix) == [self.router]:
                await _delete(self.router)
                with contextlib.suppress(OSError):
                    NAMESPACES.rmdir()
            if not _names(self.prefix):
                self._lock_file.unlink()

    def _lock(self) -> AbstractAsyncContextManager[None]:
        return files.lock(self._lock_file, deadline=LOCK_SECONDS)

    @property
    def _lock_file(self) -> Path:
        return self.state / "locks" / ".network"

    async def _ensure_router(self) -> None:
        await _create(self.router)
        clusters = [Networks(slot) for slot in addresses.SLOTS]
        own = ", ".join(f"{n.hosts} . {n.pods}, {n.pods} . {n.pods}" for n in clusters)
        await _inside(self.router, ROUTER_SCRIPT, text=FILTER.format(own=own, hosts=HOSTS))

    async def _join(self, networks: Networks, is_joined: bool) -> None:
        elements = f"ip hansa joined {{ {networks.hosts}, {networks.pods} }}"
        # Deleting a missing element fails, so it is added first; both happen in one transaction.
        change = f"add element {elements}\n" + ("" if is_joined else f"delete element {elements}\n")
        await _inside(self.router, "nft -f -", text=change)

    async def _ensure_host(self, name: str, networks: Networks, index: int) -> None:
        await _create(name)
        link, address = f"h{networks.slot}-{index}", networks.host(index)
        script = LINK_SCRIPT.format(link=link, host=name, address=address)
        if index != addresses.CONTROL_PLANE:
            script += f"ip route replace {networks.node_pods(index)} via {address} dev {link}"
        await _inside(self.router, script)
        await _inside(name, HOST_SCRIPT.format(address=address))


async def _inside(netns: str, script: str, *, text: str = "") -> None:
    await command.run("nsenter", f"--net={NAMESPACES / netns}", "sh", "-euc", script, text=text)


async def _create(netns: str) -> None:
    if not _exists(netns):
        NAMESPACES.mkdir(exist_ok=True)
        (NAMESPACES / netns).touch()
        await command.run("unshare", f"--net={NAMESPACES / netns}", "true")


async def _delete(netns: str) -> None:
    if (NAMESPACES / netns).exists():
        await command.run("ip", "netns", "delete", netns)


def _exists(netns: str) -> bool:
    """Whether the file is a network namespace, not an empty file of a failed attempt to create one."""
    with contextlib.suppress(FileNotFoundError):
        return (NAMESPACES / netns).stat().st_dev == Path("/proc/self/ns/net").stat().st_dev
    return False


def _names(prefix: str) -> list[str]:
    return sorted(path.name for path in NAMESPACES.glob(f"{prefix}*"))
