"""`hansa demo`: shows on real clusters what Hansa does, and leaves nothing behind."""

import argparse
from typing import Any

from hansa.cli.demo import nodes, pool, stage, tenants

SHOWS = {"nodes": nodes.show, "tenants": tenants.show, "pool": pool.show}
DEMOS = """\
demos:
  nodes    pods of one cluster that run in two others, by virtual nodes
  tenants  tenants with a control plane each, whose pods share a cluster
  pool     a pool of super clusters: namespaces in slices, pods in one cluster each
"""
DESCRIPTION = """\
Brings up real Kubernetes clusters on this machine, shows each command and what it says, and takes everything down
again. Ctrl-C does that at any time.
"""


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "demo",
        help="show on real clusters what Hansa does",
        description=DESCRIPTION,
        epilog=DEMOS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", choices=SHOWS, metavar="DEMO", help="one of those below (default: all)")
    parser.add_argument("--keep", action="store_true", help="leave everything running at the end, until Ctrl-C")
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    for name in [arguments.name] if arguments.name else SHOWS:
        async with stage.opened() as here:
            await SHOWS[name](here)
            if arguments.keep:
                await here.keep()
    return 0
