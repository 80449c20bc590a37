"""Prepares and removes a real node: its root file system, control groups, and the plan that its init process follows.

Starting and stopping that process is left to `real_nodes`.
"""

import hashlib
import json
import shutil
import sys
import tarfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import yaml

from hansa.local.machines import cgroups, configuration, images, init
from hansa.local.machines.addresses import Networks
from hansa.local.machines.configuration import BIN, CONTAINERD_SOCKET, ETC, IMAGES
from hansa.local.machines.host_network import HostNetwork
from hansa.local.machines.requirements import Tools
from hansa.programs import files
from hansa.runtime.errors import HansaError

KIND_LABEL = "hansa.dev/local-node"
# The label of real nodes, so that pods can select them in a cluster that has kwok nodes too.
REAL_LABEL = {KIND_LABEL: "real"}
SERVICES = ("containerd", "kubelet", "kube-proxy")
# Kernel settings that a kubelet would change for the whole machine. Files with the wanted values are mounted over them.
SHADOWS = {
    "/proc/sys/vm/overcommit_memory": "1",
    "/proc/sys/kernel/panic": "10",
    "/proc/sys/kernel/panic_on_oops": "1",
}
# Pulls that a killed node did not finish. The kubelet would not run such an image, even if it is imported now.
PULLS = "/var/lib/kubelet/image_manager/pulling"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class BadImage(HansaError):
    """A file is not an image archive."""


@dataclass(frozen=True, slots=True)
class NodeCredentials:
    """The certificates and kubeconfigs of a node's programs. Kubeconfigs have their certificates embedded."""

    ca: Path
    certificate: Path
    key: Path
    kubeconfig: Path
    proxy_kubeconfig: Path


@dataclass(frozen=True, slots=True)
class Node:
    """The wanted state of a node. Everything that the node writes is in its folder."""

    name: str
    folder: Path
    network: HostNetwork
    cluster: str
    slot: int
    index: int
    credentials: NodeCredentials
    binaries: Mapping[str, Path]
    images: tuple[Path, ...]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()

    @property
    def host(self) -> str:
        """The name of its network namespace and of its control groups."""
        return self.network.host(self.cluster, self.index)

    @property
    def address(self) -> IPv4Address:
        """The address of its kubelet."""
        return Networks(self.slot).host(self.index)

    @property
    def pods(self) -> IPv4Network:
        """The addresses of its pods."""
        return Networks(self.slot).node_pods(self.index)


def log(folder: Path, service: str) -> Path:
    """The log of one of a node's services."""
    return folder / "logs" / f"{service}.log"


def prepare(node: Node, tools: Tools) -> list[str]:
    """Write the files of the node; returns the command line to run in the network namespace of the node."""
    _check_images(node.images)
    cgroups.ensure(node.host)
    for path, content in _settings(node, tools).items():
        files.write(node.folder / "root" / path.lstrip("/"), content)
    log(node.folder, "node").parent.mkdir(parents=True, exist_ok=True)
    plan, text = node.folder / "plan.json", json.dumps(_plan(node, tools), indent=2)
    files.write(plan, text)
    # The digest changes the command line with the plan, so that a changed node is restarted.
    return [sys.executable, "-I", "-S", init.__file__, str(plan), hashlib.sha256(text.encode()).hexdigest()]


def _check_images(archives: Iterable[Path]) -> None:
    for archive in archives:
        try:
            is_good = tarfile.is_tarfile(archive)
        except OSError as error:
            raise BadImage(f"cannot read the image archive {archive}: {error.strerror}") from error
        if not is_good:
            raise BadImage(f'{archive} is not an image archive; create one with "docker save" or "ctr images export"')


async def remove(folder: Path, host: str) -> None:
    """Remove the control groups and the folder of a node whose processes have ended."""
    await cgroups.remove(host)
    shutil.rmtree(folder, ignore_errors=True)


def _settings(node: Node, tools: Tools) -> dict[str, bytes]:
    """The contents of the node's configuration files by their paths inside the node."""
    networks = Networks(node.slot)
    runtime = configuration.containerd(
        tools.containerd_major, pause=images.PAUSE, runc=str(tools.runc), cni=str(tools.cni)
    )
    kubelet = configuration.kubelet(node.address, dns=networks.dns, cgroup=node.host, taints=node.taints)
    documents = {
        "containerd.toml": runtime,
        "pods.conflist": json.dumps(configuration.cni(node.cluster, node.pods)),
        "kubelet.yaml": yaml.safe_dump(kubelet),
        "kube-proxy.yaml": yaml.safe_dump(configuration.kube_proxy(node.name, networks.pods)),
        "resolv.conf": f"nameserver {networks.dns}\n",
    }
    credentials = {
        "ca.crt": node.credentials.ca,
        "kubelet.crt": node.credentials.certificate,
        "kubelet.key": node.credentials.key,
        "kubelet.kubeconfig": node.credentials.kubeconfig,
        "kube-proxy.kubeconfig": node.credentials.proxy_kubeconfig,
    }
    return {
        **{f"{ETC}/{name}": text.encode() for name, text in documents.items()},
        **{f"{ETC}/{name}": path.read_bytes() for name, path in credentials.items()},
    }


def _plan(node: Node, tools: Tools) -> dict[str, Any]:
    archives = {str(archive): f"{IMAGES}/{number}.tar" for number, archive in enumerate(node.images)}
    programs = {str(node.binaries[name]): f"{BIN}/{name}" for name in ("kubelet", "kube-proxy")}
    elsewhere = [str(path) for path in tools.folders() if Path(*path.parts[1:2]).name not in init.SYSTEM]
    return {
        "hostname": node.name,
        "root": str(node.folder / "root"),
        "groups": [str(hierarchy.path / node.host) for hierarchy in cgroups.hierarchies()],
        "binds": [*programs.items(), *archives.items(), *((path, path) for path in elsewhere)],
        "shadows": SHADOWS,
        "logs": {service: str(log(node.folder, service)) for service in SERVICES},
        "env": {"PATH": ":".join([*elsewhere, PATH]), "HOME": "/root"},
        "runtime": "containerd",
        "socket": CONTAINERD_SOCKET,
        "imports": [_import(tools, archive) for archive in archives.values()],
        "versions": [_version(archive) for archive in node.images],  # an archive that was made again is imported again
        "forgotten": [PULLS],
        "services": {
            "containerd": [str(tools.containerd), "--config", f"{ETC}/containerd.toml"],
            "kubelet": _kubelet(node),
            "kube-proxy": [f"{BIN}/kube-proxy", f"--config={ETC}/kube-proxy.yaml"],
        },
    }


def _kubelet(node: Node) -> list[str]:
    labels = {**REAL_LABEL, **node.labels}
    return [
        f"{BIN}/kubelet",
        f"--config={ETC}/kubelet.yaml",
        f"--kubeconfig={ETC}/kubelet.kubeconfig",
        f"--hostname-override={node.name}",
        f"--node-ip={node.address}",
        f"--node-labels={','.join(f'{key}={value}' for key, value in labels.items())}",
    ]


def _version(archive: Path) -> list[int]:
    found = archive.stat()
    return [found.st_size, found.st_mtime_ns]


def _import(tools: Tools, archive: str) -> list[str]:
    """The command that imports an archive. Images are unpacked on first use, which saves time and disk space."""
    return [str(tools.ctr), "--namespace=k8s.io", "images", "import", "--no-unpack", archive]
