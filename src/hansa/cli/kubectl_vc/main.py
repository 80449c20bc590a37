"""The command line of `kubectl vc`: parses flags as kubectl does, and calls `commands`."""

import argparse
import re
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import hansa
from hansa.cli import completing
from hansa.cli import main as cli
from hansa.cli.kubectl_vc import manifest, printing, recovering
from hansa.cli.kubectl_vc.commands import Commands
from hansa.kube import errors
from hansa.kube.client import Client
from hansa.kube.credentials.source import CredentialSource
from hansa.kube.objects import NamespacedName
from hansa.runtime.errors import HansaError

DEFAULT_TIMEOUT = "5m"
SHELLS = Path.home() / ".kube" / "vc"
UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
EXAMPLES = """\
examples:
  kubectl vc create -f virtualcluster_1_nodeport.yaml -o vc-1.kubeconfig
  kubectl --kubeconfig vc-1.kubeconfig get ns
  kubectl vc list -A
  kubectl vc exec vc-sample-1 -- kubectl get pods
"""
Run = Callable[[Commands, argparse.Namespace, str], Awaitable[int]]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the result is the exit code."""
    top = parser()
    completing.answer(top)
    return cli.execute("kubectl-vc", top.parse_args(argv))


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="kubectl vc",
        description="Creates, lists, upgrades, recovers and deletes tenants' control planes (VirtualClusters).",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"kubectl-vc {hansa.__version__}")
    top.set_defaults(loop_factory=None, kubeconfig=None, context="", namespace="")
    _add_connection(top)
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    create = _add(commands, "create", _create, "create a VirtualCluster, wait for it, and write its kubeconfig")
    create.add_argument("-f", "--filename", required=True, metavar="FILE|URL|-", help="manifest of the VirtualCluster")
    create.add_argument("-o", "--output", required=True, type=Path, metavar="PATH", help="kubeconfig file to write")
    listing = _add(commands, "list", _list, "list VirtualClusters with phase, version and age")
    listing.add_argument(
        "-A", "--all-namespaces", action="store_true", help="list those of all namespaces (default false)"
    )
    _add_name(_add(commands, "get", _get, "show the status and conditions of a VirtualCluster"))
    config = _add(commands, "kubeconfig", _kubeconfig, "print the kubeconfig of a VirtualCluster")
    _add_name(config)
    config.add_argument(
        "-o", "--output", type=Path, metavar="PATH", help="kubeconfig file to write (default: standard output)"
    )
    execute = _add(commands, "exec", _exec, "run a shell or a command with the KUBECONFIG of a VirtualCluster")
    _add_name(execute)
    execute.add_argument("command", nargs="*", metavar="-- COMMAND", help="command to run (default $SHELL)")
    execute.add_argument(
        "--kubeconfig-file-dir",
        type=Path,
        default=SHELLS,
        metavar="FOLDER",
        help="folder of the temporary kubeconfig (default ~/.kube/vc)",
    )
    delete = _add(commands, "delete", _delete, "delete a VirtualCluster and its control plane")
    _add_name(delete)
    delete.add_argument(
        "--wait", action=argparse.BooleanOptionalAction, default=True, help="wait until it is deleted (default true)"
    )
    upgrade = _add(commands, "upgrade", _upgrade, "upgrade a VirtualCluster to the current state of a ClusterVersion")
    _add_name(upgrade)
    upgrade.add_argument(
        "--cluster-version",
        default="",
        metavar="NAME",
        help="ClusterVersion to use from now on (default: keep its own)",
    )
    _add_recover(_add(commands, "recover", _recover, "bring back objects of a VirtualCluster whose etcd lost its data"))
    return top


def _add_recover(recover: argparse.ArgumentParser) -> None:
    recover.description = recovering.DESCRIPTION
    _add_name(recover)
    recover.add_argument(
        "--super-kubeconfig",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="kubeconfig of a super cluster of the VirtualCluster, once for each (default: the members of the pool, or"
        " without a pool the meta cluster)",
    )
    recover.add_argument("--dry-run", action="store_true", help="print what would be done (default false)")
    recover.add_argument(
        "--delete-pods",
        action="store_true",
        help="delete copies of lost pods, policies, budgets and Ingresses; do this when these and the workloads have"
        " been applied again (default false)",
    )


def duration(text: str) -> float:
    """Seconds, from kubectl's form: 90s, 5m, 1h30m, or a plain number of seconds."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if not text or "".join(number + unit for number, unit in parts) != text:
        raise argparse.ArgumentTypeError(f'"{text}" is not a duration such as 90s or 5m')
    return sum(float(number) * UNITS[unit] for number, unit in parts)


def parse_name(name: str, namespace: str) -> NamespacedName:
    """Parse [NAMESPACE/]NAME."""
    before, slash, after = name.rpartition("/")
    return NamespacedName(before if slash else namespace, after)


def _add(commands: Any, name: str, run: Run, description: str) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=description, description=description[0].upper() + description[1:] + ".", allow_abbrev=False
    )
    _add_connection(command)
    command.add_argument(
        "--timeout",
        type=duration,
        default=duration(DEFAULT_TIMEOUT),
        metavar="TIME",
        help=f"time limit of waits, such as 90s, 5m or 1h30m (default {DEFAULT_TIMEOUT})",
    )
    command.set_defaults(run=lambda arguments: _connected(run, arguments))
    return command


def _add_connection(command: argparse.ArgumentParser) -> None:
    """Add the flags that are allowed before and after the command."""
    kept = argparse.SUPPRESS  # a default of the subcommand would override a flag before the command
    command.add_argument(
        "--kubeconfig",
        type=Path,
        default=kept,
        metavar="FILE",
        help="kubeconfig of the meta cluster (default: as kubectl)",
    )
    command.add_argument(
        "--context", default=kept, metavar="NAME", help="context of the kubeconfig (default: the current context)"
    )
    command.add_argument(
        "-n",
        "--namespace",
        default=kept,
        metavar="NAME",
        help="namespace of VirtualClusters (default: that of the context)",
    )


def _add_name(command: argparse.ArgumentParser) -> None:
    command.add_argument("name", metavar="[NAMESPACE/]NAME", help="name of the VirtualCluster")


async def _connected(run: Run, arguments: argparse.Namespace) -> int:
    access = await CredentialSource(arguments.kubeconfig, arguments.context).find()
    namespace = arguments.namespace or (await access.access()).login.namespace
    async with Client(access, user_agent=f"kubectl-vc/{hansa.__version__}") as client:
        try:
            return await run(Commands(client, arguments.timeout), arguments, namespace)
        except errors.NotFound as error:
            if error.reason:
                raise
            raise HansaError(
                "this cluster does not serve VirtualClusters: run `hansa vc-manager` for it, or use another --context"
            ) from None


async def _create(commands: Commands, arguments: argparse.Namespace, namespace: str) -> int:
    wanted = await manifest.read(arguments.filename)
    if arguments.namespace and wanted.namespace not in ("", arguments.namespace):
        raise HansaError(
            f"{arguments.filename} has namespace {wanted.namespace}, but --namespace is {arguments.namespace};"
            " use the same namespace"
        )
    await commands.create(wanted.with_metadata(namespace=wanted.namespace or namespace), arguments.output)
    return 0


async def _list(commands: Commands, arguments: argparse.Namespace, namespace: str) -> int:
    found = await commands.list("" if arguments.all_namespaces else namespace)
    print(printing.table(found, datetime.now(UTC)) if found else "no VirtualClusters found")
    return 0


async def _get(commands: Commands, arguments: argparse.Namespace, namespace: str) -> int:
    print(printing.description(await commands.get(parse_name(arguments.name, namespace))))
    return 0


async def _kubeconfig(commands: Commands, arguments: argparse.Namespace, namespace: str) -> int:
    await commands.kubeconfig(parse_name(arguments.name, namespace), arguments.output)
    return 0


async def _exec(commands: Commands, arguments: argparse.Namespace, namespace: str) -> int:
    key = parse_name(arguments.name, namespace)
    return await commands.execute(key, arguments.command, folder=arguments.kubeconfig_file_dir)


async def _delete(commands: Commands, arguments: argparse.Namespace, namespace: str) -> int:
    await commands.delete(parse_name(arguments.name, namespace), waits=arguments.wait)
    return 0


async def _recover(commands: Commands, arguments: argparse.Namespace, namespace: str) -> int:
    return await recovering.recover(
        commands,
        parse_name(arguments.name, namespace),
        arguments.super_kubeconfig,
        is_dry_run=arguments.dry_run,
        deletes_pods=arguments.delete_pods,
    )


async def _upgrade(commands: Commands, arguments: argparse.Namespace, namespace: str) -> int:
    await commands.upgrade(parse_name(arguments.name, namespace), arguments.cluster_version)
    return 0


if __name__ == "__main__":
    sys.exit(main())
