"""For tests of real nodes: whether this machine can run them, and what they left in the kernel."""

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hansa.local.machines import cgroups, requirements
from hansa.local.machines.addresses import CONTROL_PLANE, Networks
from hansa.local.machines.command import run
from hansa.local.machines.host_network import HostNetwork
from hansa.local.machines.requirements import CannotRunNodes, Tools
from hansa.programs import process
from hansa.programs.relay import NetnsAddress

# Default folders of a node's programs.
TEMPTING = ("/", "/etc", "/etc/cni", "/opt", "/run", "/var", "/var/lib", "/var/lib/cni", "/var/log", "/var/log/pods")
SETTINGS = ("vm/overcommit_memory", "kernel/panic", "kernel/panic_on_oops", "net/ipv4/ip_forward")


def tools(state: Path) -> Tools:
    """The programs for real nodes; skips the test where the machine cannot run them."""
    try:
        return requirements.prepare(state)
    except CannotRunNodes as error:
        pytest.skip(str(error))


def host(
    fabric: HostNetwork, cluster: str, networks: Networks, *, index: int = CONTROL_PLANE, port: int = 80
) -> NetnsAddress:
    """A place on a host."""
    return NetnsAddress(fabric.host(cluster, index), str(networks.host(index)), port)


@contextlib.contextmanager
def listening(place: NetnsAddress) -> Iterator[socket.socket]:
    """A server socket at a place."""
    with place.open() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind((place.address, place.port))
        server.listen(1024)
        yield server


async def traces(state: Path) -> dict[str, object]:
    """All that real nodes of a state folder could leave in the kernel."""
    marked = {f"{key}" for key in process.running(state)}
    inside = {entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit() and _mentions(entry, state)}
    return {
        "processes": marked | inside,
        "network namespaces": {path.name for path in Path("/run").glob("netns/hansa-*")},
        "mounts": {line.split(" ", 1)[1] for line in Path("/proc/self/mountinfo").read_text().splitlines()},
        "control groups": cgroups.names("hansa-"),
        "links": await run("ip", "-oneline", "link"),
        "addresses": await run("ip", "-oneline", "address"),
        "routes": await run("ip", "route", "show", "table", "all"),
        "filters": await run("nft", "list", "ruleset"),
        "files": {name: {str(path) for path in Path(name).iterdir()} for name in TEMPTING if Path(name).is_dir()},
        "settings": {name: Path("/proc/sys", name).read_text() for name in SETTINGS},
    }


def _mentions(entry: Path, state: Path) -> bool:
    """Whether a process was started for this state folder, or has its root or its working folder there."""
    try:
        root, folder = ((entry / name).readlink() for name in ("root", "cwd"))
        return (
            root.is_relative_to(state) or folder.is_relative_to(state) or str(state) in (entry / "cmdline").read_text()
        )
    except OSError:
        return False
