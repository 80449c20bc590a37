"""Checks whether this machine can run real nodes, and names missing permissions, kernel features and packages."""

import os
import platform
import re
import shutil
import struct
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hansa.local.machines import cgroups, command
from hansa.runtime.errors import HansaError

COMMANDS = {
    "containerd": "containerd",
    "containerd-shim-runc-v2": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "nft": "nftables",
    "iptables": "iptables",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "busybox": "busybox-static",
}
CNI_PLUGINS = ("bridge", "host-local", "loopback", "portmap")
CNI_PACKAGE = "containernetworking-plugins"
CNI_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"), Path("/usr/libexec/cni"))
# The Debian package of each required command and plugin.
PACKAGES = {**COMMANDS, **dict.fromkeys(CNI_PLUGINS, CNI_PACKAGE)}

CAP_SYS_ADMIN, CAP_NET_ADMIN = 21, 12
INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
# An API server uses 3 instances, a kubelet 6, containerd 2: enough for a hundred clusters of one node.
INOTIFY_INSTANCES = 1024
ELF_INTERPRETER = 3


class CannotRunNodes(HansaError):
    """The machine lacks a requirement of real nodes."""


@dataclass(frozen=True, slots=True)
class Tools:
    """Paths of the machine's programs that a node uses."""

    containerd: Path
    containerd_major: int
    ctr: Path
    runc: Path
    cni: Path
    busybox: Path

    def folders(self) -> list[Path]:
        """The folders of the programs."""
        return sorted({self.containerd.parent, self.ctr.parent, self.runc.parent, self.cni})


def lacking(state: Path) -> list[str]:
    """The reasons why this machine cannot run real nodes with this state folder; empty if it can."""
    if platform.system() != "Linux":
        return [f"real nodes need Linux, not {platform.system()}"]
    if os.geteuid() != 0:
        return ["real nodes need root, to create namespaces and control groups"]
    return [*_lacking_rights(), *_lacking_kernel(), *_lacking_commands(), *_lacking_in(state)]


def missing(search: str | None = None, cni_folders: Iterable[Path] = CNI_FOLDERS) -> list[str]:
    """The commands and plugins that are not installed."""
    commands = [name for name in COMMANDS if shutil.which(name, path=search or command.search_path()) is None]
    return commands if any(map(_has_plugins, cni_folders)) else [*commands, *CNI_PLUGINS]


def packages(names: Iterable[str]) -> list[str]:
    """The Debian packages of these commands and plugins."""
    return sorted({PACKAGES[name] for name in names})


def prepare(state: Path) -> Tools:
    """Load kernel modules and raise limits where needed, check all requirements, and find the tools."""
    if platform.system() == "Linux" and os.geteuid() == 0:
        _load_modules()
        _raise_inotify()
    if reasons := lacking(state):
        raise CannotRunNodes(f"this machine cannot run real nodes: {'; '.join(reasons)}")
    found = {name: path for name in COMMANDS if (path := _command(name))}
    return Tools(
        containerd=found["containerd"],
        containerd_major=containerd_major(_output(found["containerd"], "--version")),
        ctr=found["ctr"],
        runc=found["runc"],
        cni=next(filter(_has_plugins, CNI_FOLDERS)),
        busybox=found["busybox"],
    )


def containerd_major(version: str) -> int:
    """The major version in the output of `containerd --version`."""
    match = re.search(r"\sv?(\d+)\.\d+", version)
    if match is None:
        raise CannotRunNodes(f'no version in the output of "containerd --version": {version.strip()}')
    return int(match[1])


def is_static(program: Path) -> bool:
    """Whether a program is statically linked: only then it can be the only file of an image."""
    with program.open("rb") as file:
        head = file.read(64)
        if head[:5] != b"\x7fELF\x02":
            return False
        (offset,) = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        file.seek(offset)
        table = file.read(size * count)
    kinds = [struct.unpack_from("<I", table, size * i)[0] for i in range(count)]
    return ELF_INTERPRETER not in kinds


def _lacking_rights() -> Iterator[str]:
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines())
    effective = int(status["CapEff"], 16)
    for bit, name in ((CAP_SYS_ADMIN, "CAP_SYS_ADMIN"), (CAP_NET_ADMIN, "CAP_NET_ADMIN")):
        if not effective >> bit & 1:
            yield f"root lacks {name}, as in an unprivileged container, and cannot create namespaces"


def _lacking_kernel() -> Iterator[str]:
    if absent := cgroups.missing_controllers():
        yield f"no cgroup hierarchy offers {', '.join(absent)} (mount them below /sys/fs/cgroup)"
    for hierarchy in cgroups.hierarchies():
        if not os.access(hierarchy.path, os.W_OK) or os.statvfs(hierarchy.path).f_flag & os.ST_RDONLY:
            yield f"the cgroup hierarchy {hierarchy.path} is read only"
    if not re.search(r"\boverlay$", Path("/proc/filesystems").read_text(), re.MULTILINE):
        yield "the kernel has no overlay file system (modprobe overlay)"
    if not Path("/proc/sys/net/bridge").is_dir():
        yield "the kernel does not filter bridged packets (modprobe br_netfilter)"
    for kind in ("net", "pid", "mnt", "uts"):
        if not Path(f"/proc/self/ns/{kind}").exists():
            yield f"the kernel has no {kind} namespaces"
    if int(INOTIFY.read_text()) < INOTIFY_INSTANCES:
        yield f"fs.inotify.max_user_instances is below {INOTIFY_INSTANCES} (raise it with sysctl)"


def _lacking_commands() -> Iterator[str]:
    if names := missing():
        yield f"{', '.join(names)} not found (on Debian: apt-get install {' '.join(packages(names))})"
    busybox = _command("busybox")
    if busybox and not is_static(busybox):
        yield f"{busybox} is not static (on Debian: apt-get install busybox-static)"


def _lacking_in(state: Path) -> Iterator[str]:
    there = next(path for path in (state, *state.absolute().parents) if path.exists())
    if _file_system(there) == "overlay":
        yield f"state folder {state} is on an overlay file system, which cannot hold images; choose another (--state)"


def _command(name: str) -> Path | None:
    found = shutil.which(name, path=command.search_path())
    return Path(found).resolve() if found else None


def _has_plugins(folder: Path) -> bool:
    return all((folder / plugin).exists() for plugin in CNI_PLUGINS)


def _file_system(path: Path) -> str:
    device = path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if before.split(" ")[2] == number:
            return after.split(" ")[0]
    return "unknown"


def _load_modules() -> None:
    wanted = {"overlay": Path("/sys/module/overlay"), "br_netfilter": Path("/proc/sys/net/bridge")}
    absent = [module for module, sign in wanted.items() if not sign.exists()]
    if absent and (modprobe := _command("modprobe")):
        subprocess.run([modprobe, "--all", "--quiet", *absent], check=False)


def _raise_inotify() -> None:
    if int(INOTIFY.read_text()) < INOTIFY_INSTANCES:
        try:
            INOTIFY.write_text(str(INOTIFY_INSTANCES))
        except OSError:
            return  # `lacking` reports that it is too low.


def _output(program: Path, *arguments: str) -> str:
    return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout
