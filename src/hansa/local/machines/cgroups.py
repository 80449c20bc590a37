"""Creates and removes the control groups of a node: one of the same name in every cgroup v1 or v2 hierarchy."""

import asyncio
import contextlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hansa.runtime.errors import HansaError

REMOVE_SECONDS = 20.0
RETRY_SECONDS = 0.05
# The controllers that a kubelet needs.
CONTROLLERS = ("cpu", "cpuset", "memory", "pids")


class Busy(HansaError):
    """A control group still has processes after the deadline."""


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A mounted cgroup hierarchy and its controllers."""

    path: Path
    is_unified: bool
    controllers: frozenset[str]


def hierarchies(mountinfo: str | None = None) -> list[Hierarchy]:
    """All hierarchies of the machine."""
    text = Path("/proc/self/mountinfo").read_text() if mountinfo is None else mountinfo
    found: dict[Path, Hierarchy] = {}
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        path = Path(before.split(" ")[4])
        match kind:
            case "cgroup":
                found[path] = Hierarchy(path, is_unified=False, controllers=frozenset(options.split(",")))
            case "cgroup2":
                found[path] = Hierarchy(path, is_unified=True, controllers=_unified_controllers(path))
    return list(found.values())


def missing_controllers() -> list[str]:
    """The controllers that a kubelet needs and that no hierarchy offers."""
    present = {controller for hierarchy in hierarchies() for controller in hierarchy.controllers}
    return [controller for controller in CONTROLLERS if controller not in present]


def ensure(name: str, among: Iterable[Hierarchy] | None = None) -> None:
    """Create the groups of a node, with controllers enabled for groups below them."""
    for hierarchy in hierarchies() if among is None else among:
        group = hierarchy.path / name
        if hierarchy.is_unified:
            _delegate(hierarchy.path, hierarchy.controllers)
        group.mkdir(exist_ok=True)
        if hierarchy.is_unified:
            _delegate(group, hierarchy.controllers)
        elif "cpuset" in hierarchy.controllers:
            # A new cpuset group of cgroup v1 has no CPUs and no memory nodes, and accepts no process until it has.
            for setting in ("cpuset.cpus", "cpuset.mems"):
                (group / setting).write_text((hierarchy.path / setting).read_text())


def names(prefix: str) -> set[str]:
    """The existing groups whose names begin with the prefix."""
    return {path.name for hierarchy in hierarchies() for path in hierarchy.path.glob(f"{prefix}*") if path.is_dir()}


async def remove(name: str, *, deadline: float = REMOVE_SECONDS) -> None:
    """Remove the groups of a node, waiting until its processes have ended."""
    try:
        async with asyncio.timeout(deadline):
            for hierarchy in hierarchies():
                while (busy := _remove_tree(hierarchy.path / name)) is not None:
                    await asyncio.sleep(RETRY_SECONDS)
    except TimeoutError:
        raise Busy(
            f"the control group {busy} still has processes after {deadline:.0f} s; end them and try again"
        ) from None


def _remove_tree(top: Path) -> Path | None:
    """Remove a group and those below it; returns the first that is still busy."""
    for path, _, _ in os.walk(top, topdown=False):
        try:
            Path(path).rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            return Path(path)
    return None


def _unified_controllers(path: Path) -> frozenset[str]:
    with contextlib.suppress(OSError):
        return frozenset((path / "cgroup.controllers").read_text().split())
    return frozenset()


def _delegate(group: Path, controllers: frozenset[str]) -> None:
    wanted = controllers & {*CONTROLLERS, "hugetlb", "io"}
    missing = wanted - set((group / "cgroup.subtree_control").read_text().split())
    if missing:
        (group / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in sorted(missing)))
