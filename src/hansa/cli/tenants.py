"""`hansa tenants`: control planes that run as processes of this machine, and the removal of leftovers."""

import argparse
import os
from pathlib import Path
from typing import Any

from hansa.cli import cluster_flags, log_flags, vc_manager
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.runtime.errors import HansaError
from hansa.tenancy.operator.process import pruning
from hansa.tenancy.operator.process.provisioner import ProcessProvisioner, ProcessSettings
from hansa.tenancy.operator.process.pruning import Found, State
from hansa.tenancy.operator.provisioning import Progress

EXAMPLES = """\
examples:
  hansa tenants list
  hansa tenants prune
  hansa tenants prune --yes

A tenant is pruned if its meta cluster is gone: another cluster is at its address, or it was on this machine and its
kubeconfig was deleted. One that does not answer may come back; --unreachable prunes its tenants, too. Those of a meta
cluster that answers are removed by vc-manager, with their VirtualClusters. End a vc-manager of a meta cluster that is
gone first, since it would start again what ends.
"""


def add_to(commands: Any) -> None:
    """Add the subcommand and those below it."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "tenants",
        help="list control planes of this machine (vc-manager --provisioner process), and remove leftovers",
        description="Lists control planes of tenants that run as processes of this machine, and removes leftovers.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    subcommands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listing = subcommands.add_parser("list", help="list them, with the state of their meta clusters")
    prune = subcommands.add_parser(
        "prune", help="remove those whose meta cluster is gone; without --yes only show them"
    )
    for below, run in ((listing, _list), (prune, _prune)):
        below.add_argument(
            "--state",
            type=Path,
            metavar="DIR",
            help="--state of vc-manager (default $XDG_STATE_HOME/hansa-tenants, otherwise"
            " ~/.local/state/hansa-tenants)",
        )
        cluster_flags.add_connection(below, "context of a meta cluster to ask, too; repeatable (default none)")
        log_flags.add_to(below)
        below.set_defaults(run=run)
    prune.add_argument("--yes", action="store_true", help="remove them: processes, data and keys (default false)")
    prune.add_argument(
        "--unreachable",
        action="store_true",
        help="also those whose meta cluster does not answer, or is not known (default false)",
    )


async def _list(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    for one in await _survey(arguments):
        print(_line(one))
    return 0


async def _prune(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    found = await _survey(arguments)
    states = {State.GONE} | ({State.UNREACHABLE, State.UNKNOWN} if arguments.unreachable else set())
    chosen = [one for one in found if one.state in states]
    failed = 0
    for one in chosen:
        if not arguments.yes:
            print(f"would remove {_line(one)}")
        elif trouble := await _remove(_state(arguments), one):
            print(f"not removed: {one.name}: {trouble}")
            failed += 1
        else:
            print(f"removed {_line(one)}")
    for one in found:
        if one not in chosen and one.state is not State.SERVED:
            print(f"kept {_line(one)}")
    return 1 if failed else 0


async def _remove(state: Path, one: Found) -> str:
    """Remove a control plane; what prevents it, or ""."""
    provisioner = ProcessProvisioner(ProcessSettings(state), meta=one.record.meta if one.record else "")
    try:
        done = await provisioner.remove_folder(one.folder)
    except HansaError as error:
        return str(error)
    return done.reason if isinstance(done, Progress) else ""


async def _survey(arguments: argparse.Namespace) -> list[Found]:
    alive = {await _identify(one, arguments.timeout) for one in cluster_flags.asked(arguments, default=False)}
    return await pruning.survey(_state(arguments), alive=alive, deadline=arguments.timeout)


async def _identify(asked: Any, deadline: float) -> str:
    """The uid of a meta cluster that the user names; one that does not answer is an error, not a reason to prune."""
    try:
        async with Client(await asked.source.find(), user_agent=pruning.AGENT, deadline=deadline) as client:
            return (await client.get(resources.NAMESPACES, "kube-system")).uid
    except errors.ApiError as error:
        raise HansaError(f"--context {asked.name}: {error}") from None


def _state(arguments: argparse.Namespace) -> Path:
    found: Path = (arguments.state or vc_manager.default_state(os.environ)).absolute()
    return found


def _line(one: Found) -> str:
    return f"{one.name} ({one.processes} processes, {one.folder.path}): {one.state}: {one.why}"
