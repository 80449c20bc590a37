"""`hansa uninstall`: removes what `hansa install` created, and keeps definitions and data."""

import argparse
import asyncio
from typing import Any

from hansa.app import agent as federation
from hansa.app.installation.removing import Remover
from hansa.app.installation.rendering import Mode
from hansa.cli import agent, install, log_flags

EXAMPLES = f"""\
{install.MODES}
examples:
  hansa uninstall --context meta --mode pool --dry-run
  hansa uninstall --context meta --mode pool --purge
"""


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "uninstall",
        help="remove what hansa install created in a cluster",
        description="Deletes the objects that hansa install created, and nothing else. CustomResourceDefinitions and"
        " what tenants have are kept, unless --purge is given.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    install.add_flags(parser)
    parser.add_argument(
        "--purge",
        action="store_true",
        help="also delete all VirtualClusters with their control planes and data, and the definitions (default false)",
    )
    log_flags.add_to(parser)
    parser.set_defaults(run=_run)


async def _end_federation(arguments: argparse.Namespace) -> None:
    """Remove delegates, virtual nodes, finalizers and definitions, as `hansa agent --uninstall` does."""
    words = ["agent", "--uninstall"]
    words += ["--kubeconfig", str(arguments.kubeconfig)] if arguments.kubeconfig else []
    words += ["--context", arguments.context] if arguments.context else []
    commands = argparse.ArgumentParser()
    agent.add_to(commands.add_subparsers())
    async with asyncio.timeout(arguments.timeout):
        await federation.uninstall(agent.read(commands.parse_args(words)))


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    wanted = install.installation(arguments)
    if arguments.purge and wanted.mode is Mode.ADMIRALTY and not arguments.dry_run:
        await _end_federation(arguments)
    async with await install.connect(arguments) as client:
        remover = Remover(wanted, client, install.report, is_dry_run=arguments.dry_run, purges=arguments.purge)
        await remover.uninstall(deadline=arguments.timeout)
    if not arguments.dry_run:
        install.report(f"mode {wanted.mode} is removed from namespace {wanted.namespace}")
    return 0
