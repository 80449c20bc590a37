"""`hansa uninstall`: removes what `hansa install` created, and keeps definitions and data."""

import argparse
import asyncio
import contextlib
from typing import Any

from hansa.app import agent as federation
from hansa.app.installation.removing import Remover
from hansa.app.installation.rendering import Mode
from hansa.cli import agent, install, log_flags
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.runtime.errors import HansaError

AGENT = "hansa-agent"  # the Deployment of agents
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
        help="also delete the data of the mode: all VirtualClusters with their control planes, or the delegates of a"
        " federation; and the definitions (default false)",
    )
    log_flags.add_to(parser)
    parser.set_defaults(run=_run)


async def _end_federation(arguments: argparse.Namespace, client: Client, namespace: str) -> None:
    """Remove delegates, virtual nodes, finalizers and definitions, as `hansa agent --uninstall` does."""
    if arguments.dry_run:
        install.report("delegates, virtual nodes, finalizers and definitions of the federation would be removed")
        return
    words = ["agent", "--uninstall"]
    with contextlib.suppress(errors.NotFound):  # a former attempt has deleted it
        found = await client.get(resources.DEPLOYMENTS, AGENT, namespace=namespace)
        words += ["--stop-deployment", str(found.key)]
    words += ["--kubeconfig", str(arguments.kubeconfig)] if arguments.kubeconfig else []
    words += ["--context", arguments.context] if arguments.context else []
    commands = argparse.ArgumentParser()
    agent.add_to(commands.add_subparsers())
    try:
        async with asyncio.timeout(arguments.timeout):
            await federation.uninstall(agent.read(commands.parse_args(words)))
    except TimeoutError:
        raise HansaError(
            f"the federation is still being removed after {arguments.timeout:g} s; run the same command again"
        ) from None


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    wanted = install.installation(arguments)
    async with await install.connect(arguments) as client:
        remover = Remover(wanted, client, install.report, is_dry_run=arguments.dry_run, purges=arguments.purge)
        is_installed = await remover.is_installed()
        if is_installed and arguments.purge and wanted.mode is Mode.ADMIRALTY:
            await _end_federation(arguments, client, wanted.namespace)
        await remover.uninstall(deadline=arguments.timeout)
    if is_installed and not arguments.dry_run:
        install.report(f"mode {wanted.mode} is removed from namespace {wanted.namespace}")
    return 0
