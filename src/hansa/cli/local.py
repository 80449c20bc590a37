"""`hansa local`: parses the command line, calls `hansa.local.Fleet` and prints the result."""

import argparse
import asyncio
import os
import signal
import sys
import textwrap
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import yaml

from hansa.cli.demo import leftovers
from hansa.local import fleet as fleets
from hansa.local import spec, state
from hansa.local.cluster import Cluster
from hansa.local.control_plane import kubeconfig
from hansa.local.fleet import Fleet
from hansa.local.spec import ClusterSpec, InvalidSpec
from hansa.programs import binaries

Run = Callable[[argparse.Namespace], Awaitable[int]]
S = TypeVar("S", bound=msgspec.Struct)
Subparsers = Any  # the type of argparse subparsers is private

UP_EXAMPLES = """\
examples:
  hansa local up a b --nodes 3
  hansa local up big --nodes 1000 --node-cpu 64 --node-taint dedicated=batch:NoSchedule
  hansa local up real --real-nodes 2
  kubectl --kubeconfig <(hansa local kubeconfig) --context a get nodes
"""


def add_to(commands: Subparsers) -> None:
    """Add the subcommand and all below it."""
    local = commands.add_parser(
        "local",
        help="run real Kubernetes clusters on this machine",
        description="Run real Kubernetes clusters as plain processes, without containers or virtual machines.",
    )
    subcommands = local.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_up(subcommands)
    down = _add(
        subcommands,
        "down",
        _down,
        "stop clusters and remove their processes, files and networks; without names, also what a killed demo left",
    )
    down.add_argument("names", nargs="*", metavar="NAME", help="name of a cluster (default: all clusters)")
    listing = _add(subcommands, "list", _list, "list clusters with status, server and number of nodes")
    listing.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="output format (default table)"
    )
    config = _add(
        subcommands,
        "kubeconfig",
        _kubeconfig,
        "print the kubeconfig of a cluster, or of all clusters with a context for each",
    )
    config.add_argument("name", nargs="?", metavar="NAME", help="name of a cluster (default: all clusters)")
    logs = _add(subcommands, "logs", _logs, "print the log of a component")
    logs.add_argument("name", metavar="NAME", help="name of the cluster")
    logs.add_argument("component", metavar="COMPONENT", help="etcd, kube-apiserver, audit, kubelet-1, …")
    logs.add_argument("-f", "--follow", action="store_true", help="keep printing new lines (default false)")
    nodes = _add(subcommands, "nodes", _nodes, "add or remove kwok nodes")
    nodes.add_argument("name", metavar="NAME", help="name of the cluster")
    nodes.add_argument("change", metavar="+N|-N", type=_change, help="number of kwok nodes to add or remove")
    programs = _add(subcommands, "binaries", _binaries, "download or build binaries, and print their paths")
    programs.add_argument(
        "names", nargs="*", metavar="NAME", help="kubectl, etcd, … (default: all that local clusters use)"
    )


def _add(subcommands: Subparsers, name: str, run: Run, description: str, **kwargs: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subcommands.add_parser(
        name, help=description, description=description[0].upper() + description[1:] + ".", **kwargs
    )
    parser.add_argument(
        "--state",
        type=Path,
        metavar="FOLDER",
        help="state folder of the clusters (default $HANSA_STATE, otherwise ~/.local/state/hansa)",
    )
    parser.set_defaults(run=run)
    return parser


def _add_up(subcommands: Subparsers) -> None:
    up = _add(
        subcommands,
        "up",
        _up,
        "create clusters, or repair and change existing ones",
        epilog=textwrap.dedent(UP_EXAMPLES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    up.add_argument("names", nargs="+", metavar="NAME", help="name of a cluster")
    _add_node_options(up)
    _add_control_plane_options(up)


def _add_node_options(up: argparse.ArgumentParser) -> None:
    nodes = up.add_argument_group(
        "nodes",
        "Options that are not given keep their value in an existing cluster; defaults are those of a new cluster.",
    )
    nodes.add_argument(
        "--nodes", type=int, metavar="N", help="number of kwok nodes: Node objects with simulated kubelets (default 0)"
    )
    nodes.add_argument("--node-cpu", metavar="QUANTITY", help=f"CPU of each kwok node (default {spec.NodeShape().cpu})")
    nodes.add_argument(
        "--node-memory", metavar="QUANTITY", help=f"memory of each kwok node (default {spec.NodeShape().memory})"
    )
    nodes.add_argument(
        "--node-pods", metavar="N", help=f"pod capacity of each kwok node (default {spec.NodeShape().pods})"
    )
    nodes.add_argument(
        "--node-label",
        action="append",
        type=_argument(spec.label),
        metavar="K=V",
        help="label of each kwok node; repeatable (default none)",
    )
    nodes.add_argument(
        "--node-taint",
        action="append",
        type=_argument(spec.Taint.parse),
        metavar="K=V:EFFECT",
        help="taint of each kwok node; repeatable (default none)",
    )
    nodes.add_argument(
        "--real-nodes",
        type=int,
        metavar="N",
        help="number of real nodes: kubelets with containerd; needs Linux and root (default 0)",
    )
    nodes.add_argument(
        "--join-pods",
        action=argparse.BooleanOptionalAction,
        help="let pods of real nodes reach those of other clusters that have this option (default false)",
    )
    nodes.add_argument(
        "--image",
        action="append",
        metavar="FILE",
        help="OCI image archive to import on real nodes; repeatable (default none)",
    )


def _add_control_plane_options(up: argparse.ArgumentParser) -> None:
    plane = up.add_argument_group("control plane")
    plane.add_argument("--port", type=int, help="port of the API server on loopback (default: a free port)")
    plane.add_argument("--scheduler", action=argparse.BooleanOptionalAction, help="run kube-scheduler (default true)")
    plane.add_argument(
        "--audit",
        action=argparse.BooleanOptionalAction,
        help='write an audit log, printed by "logs NAME audit" (default false)',
    )
    plane.add_argument(
        "--lift-limits",
        action=argparse.BooleanOptionalAction,
        help="raise client and server rate limits, for benchmarks (default false)",
    )
    plane.add_argument(
        "--flag",
        action="append",
        type=_argument(spec.flag),
        metavar="COMPONENT=--FLAG=VALUE",
        help="extra flag of a component; repeatable (default none)",
    )
    plane.add_argument(
        "--binaries", type=Path, metavar="FOLDER", help="folder of binaries to use first (default $HANSA_BINARIES)"
    )
    plane.add_argument(
        "--etcd-fast",
        action="store_true",
        help="start etcd without fsync, for tests; no effect if etcd runs already (default false)",
    )


def _argument(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Adapt a parser for argparse: InvalidSpec becomes a usage error."""

    def convert(text: str) -> Any:
        try:
            return parse(text)
        except InvalidSpec as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return convert


def _change(text: str) -> int:
    if text[:1] not in "+-" or not text[1:].isdigit():
        raise argparse.ArgumentTypeError(f'"{text}" is not of the form +N or -N')
    return int(text)


def _fleet(arguments: argparse.Namespace) -> Fleet:
    return Fleet(
        state.open_state(arguments.state),
        progress=binaries.Renderer(sys.stderr),
        is_etcd_fast=getattr(arguments, "etcd_fast", False),
    )


async def _up(arguments: argparse.Namespace) -> int:
    fleet = _fleet(arguments)
    former = {cluster.name: cluster.record.spec for cluster in fleet.clusters()}
    names = list(dict.fromkeys(arguments.names))
    specs = [_wanted(arguments, former.get(name) or ClusterSpec(name)) for name in names]
    for cluster in await fleet.up(specs):
        print(f"{cluster.name} is ready at {cluster.server}: kubectl --kubeconfig {cluster.kubeconfig} get nodes")
    return 0


def _wanted(arguments: argparse.Namespace, base: ClusterSpec) -> ClusterSpec:
    """The existing or default specification with the changes of the command line."""
    shape = _changed(
        base.shape,
        cpu=arguments.node_cpu,
        memory=arguments.node_memory,
        pods=arguments.node_pods,
        labels=dict(arguments.node_label) if arguments.node_label else None,
        taints=tuple(arguments.node_taint) if arguments.node_taint else None,
    )
    return _changed(
        base,
        shape=shape,
        nodes=arguments.nodes,
        real_nodes=arguments.real_nodes,
        join_pods=arguments.join_pods,
        images=tuple(str(Path(i).absolute()) for i in arguments.image) if arguments.image else None,
        port=arguments.port,
        scheduler=arguments.scheduler,
        audit=arguments.audit,
        lift_limits=arguments.lift_limits,
        flags=_by_component(arguments.flag) if arguments.flag else None,
        binaries=str(arguments.binaries.absolute()) if arguments.binaries else None,
    )


def _changed(base: S, **changes: Any) -> S:
    return msgspec.structs.replace(base, **{name: value for name, value in changes.items() if value is not None})


def _by_component(flags: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    grouped: dict[str, tuple[str, ...]] = {}
    for component, flag in flags:
        grouped[component] = (*grouped.get(component, ()), flag)
    return grouped


async def _down(arguments: argparse.Namespace) -> int:
    fleet = _fleet(arguments)
    names = list(dict.fromkeys(arguments.names)) or fleet.names()
    await fleet.down(names)
    for name in names:
        print(f"{name} is gone")
    if not arguments.names:
        await fleet.sweep()
        for folder in await leftovers.sweep():
            print(f"removed what a demo left that was killed: {folder}")
    return 0


async def _list(arguments: argparse.Namespace) -> int:
    rows = [_row(cluster) for cluster in _fleet(arguments).clusters()]
    if arguments.output == "json":
        print(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
        return 0
    cells = [("NAME", "STATUS", "SERVER", "NODES", "REAL NODES")]
    cells += [(r["name"], _status(r), r["server"], str(r["nodes"]), str(r["realNodes"])) for r in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    for row in cells:
        print("   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


def _row(cluster: Cluster) -> dict[str, Any]:
    return {
        "name": cluster.name,
        "server": cluster.server,
        "kubeconfig": str(cluster.kubeconfig),
        "nodes": cluster.record.spec.nodes,
        "realNodes": cluster.record.spec.real_nodes,
        "processes": cluster.processes(),
        "notRunning": cluster.missing(),
    }


def _status(row: dict[str, Any]) -> str:
    return f"broken: {', '.join(row['notRunning'])} not running" if row["notRunning"] else "running"


async def _kubeconfig(arguments: argparse.Namespace) -> int:
    fleet = _fleet(arguments)
    clusters = [fleet.cluster(arguments.name)] if arguments.name else fleet.clusters()
    configs = [yaml.safe_load(cluster.kubeconfig.read_text()) for cluster in clusters]
    print(kubeconfig.dump(kubeconfig.merge(configs)), end="")
    return 0


async def _logs(arguments: argparse.Namespace) -> int:
    log = _fleet(arguments).cluster(arguments.name).log(arguments.component)
    how = ["-F"] if arguments.follow else []
    tail = await asyncio.create_subprocess_exec("tail", "-n", "+1", *how, os.fspath(log))
    code = await tail.wait()
    return 0 if code == -signal.SIGPIPE else code  # the reader closed the pipe, as head does


async def _nodes(arguments: argparse.Namespace) -> int:
    fleet = _fleet(arguments)
    former = fleet.cluster(arguments.name).record.spec
    count = former.nodes + arguments.change
    if count < 0:
        raise InvalidSpec(f"cluster {former.name} has only {former.nodes} kwok nodes")
    [cluster] = await fleet.up([_changed(former, nodes=count)])
    print(f"{cluster.name} has {count} kwok nodes")
    return 0


async def _binaries(arguments: argparse.Namespace) -> int:
    names = arguments.names or fleets.BINARIES
    for one in await binaries.provide(names, progress=binaries.Renderer(sys.stderr)):
        print(f"{one.binary.label}\t{one.source}\t{one.path}")
    return 0
