"""`hansa local`: real Kubernetes clusters on this machine, for people and scripts."""

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

from hansa.local import binaries, kubeconfig, spec, state
from hansa.local import fleet as fleets
from hansa.local.cluster import Cluster
from hansa.local.fleet import Fleet
from hansa.local.spec import ClusterSpec, InvalidSpec

Run = Callable[[argparse.Namespace], Awaitable[int]]
S = TypeVar("S", bound=msgspec.Struct)
Subparsers = Any  # argparse keeps the type of its subparsers to itself

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
        help="real Kubernetes clusters on this machine",
        description="Runs real Kubernetes clusters as plain processes, without containers or virtual machines.",
    )
    subcommands = local.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_up(subcommands)
    down = _add(subcommands, "down", _down, "end clusters and remove all that they left")
    down.add_argument("names", nargs="*", metavar="NAME", help="the clusters; without one: all")
    listing = _add(subcommands, "list", _list, "the clusters and how they are")
    listing.add_argument("-o", "--output", choices=("table", "json"), default="table")
    config = _add(
        subcommands, "kubeconfig", _kubeconfig, "print a kubeconfig; of all clusters, a context each, without NAME"
    )
    config.add_argument("name", nargs="?", metavar="NAME")
    logs = _add(subcommands, "logs", _logs, "print what a component logged")
    logs.add_argument("name", metavar="NAME")
    logs.add_argument("component", metavar="COMPONENT", help="kube-apiserver, etcd, kubelet-NODE, …")
    logs.add_argument("-f", "--follow", action="store_true", help="go on with what comes")
    nodes = _add(subcommands, "nodes", _nodes, "add or remove kwok nodes")
    nodes.add_argument("name", metavar="NAME")
    nodes.add_argument("change", metavar="+N|-N", type=_change, help="how many more or fewer")
    programs = _add(subcommands, "binaries", _binaries, "get binaries now, and say where they are")
    programs.add_argument(
        "names", nargs="*", metavar="NAME", help="kubectl, etcd, …; without one: all that local clusters use"
    )


def _add(subcommands: Subparsers, name: str, run: Run, description: str, **kwargs: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = subcommands.add_parser(
        name, help=description, description=description[0].upper() + description[1:] + ".", **kwargs
    )
    parser.add_argument("--state", type=Path, metavar="FOLDER", help="where clusters are kept (default: $HANSA_STATE)")
    parser.set_defaults(run=run)
    return parser


def _add_up(subcommands: Subparsers) -> None:
    up = _add(
        subcommands,
        "up",
        _up,
        "start clusters, or repair and change those that are there",
        epilog=textwrap.dedent(UP_EXAMPLES),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    up.add_argument("names", nargs="+", metavar="NAME")
    nodes = up.add_argument_group("nodes", "What is not given stays as it is, or takes its default in a new cluster.")
    nodes.add_argument(
        "--nodes", type=int, metavar="N", help="kwok nodes: real objects, simulated kubelets (default 0)"
    )
    nodes.add_argument("--node-cpu", metavar="QUANTITY", help=f"of each (default {spec.NodeShape().cpu})")
    nodes.add_argument("--node-memory", metavar="QUANTITY", help=f"of each (default {spec.NodeShape().memory})")
    nodes.add_argument("--node-pods", metavar="N", help=f"of each (default {spec.NodeShape().pods})")
    nodes.add_argument("--node-label", action="append", type=_argument(spec.label), metavar="K=V")
    nodes.add_argument("--node-taint", action="append", type=_argument(spec.Taint.parse), metavar="K=V:EFFECT")
    nodes.add_argument("--real-nodes", type=int, metavar="N", help="real kubelets with containerd (Linux, root)")
    nodes.add_argument(
        "--join-pods", action=argparse.BooleanOptionalAction, help="pods reach those of other such clusters"
    )
    nodes.add_argument("--image", action="append", metavar="FILE", help="an OCI image archive for the real nodes")
    plane = up.add_argument_group("control plane")
    plane.add_argument("--port", type=int, help="the API server's port on loopback (default: a free one)")
    plane.add_argument("--scheduler", action=argparse.BooleanOptionalAction, help="run kube-scheduler (default yes)")
    plane.add_argument("--audit", action=argparse.BooleanOptionalAction, help='write an audit log: "logs NAME audit"')
    plane.add_argument("--lift-limits", action=argparse.BooleanOptionalAction, help="no client or server rate limits")
    plane.add_argument("--flag", action="append", type=_argument(spec.flag), metavar="COMPONENT=--FLAG=VALUE")
    plane.add_argument("--binaries", type=Path, metavar="FOLDER", help="take binaries from here first")
    plane.add_argument(
        "--etcd-fast", action="store_true", help="etcd without fsync, for tests; if it is not running yet"
    )


def _argument(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """A parser of ours as argparse wants it: its sentence becomes the usage error."""

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
    wishes = [_wish(arguments, former.get(name) or ClusterSpec(name)) for name in names]
    for cluster in await fleet.up(wishes):
        print(f"{cluster.name} is ready at {cluster.server}: kubectl --kubeconfig {cluster.kubeconfig} get nodes")
    return 0


def _wish(arguments: argparse.Namespace, base: ClusterSpec) -> ClusterSpec:
    """The cluster as it was, or as a new one is by default, with what the command line says."""
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
    return 0 if code == -signal.SIGPIPE else code  # whoever reads has seen enough


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
    for holding in await binaries.provide(names, progress=binaries.Renderer(sys.stderr)):
        print(f"{holding.binary.label}\t{holding.source}\t{holding.path}")
    return 0
