"""`hansa demo`: runs demos on real clusters of this machine, and removes everything afterwards."""

import argparse
from typing import Any

from hansa.cli.demo import burst, nodes, pool, stage, tenants

SHOWS = {"nodes": nodes.show, "tenants": tenants.show, "pool": pool.show, "burst": burst.show}
DEMOS = """\
demos:
  nodes    pods of one cluster run in two others, through virtual nodes
  tenants  two tenants, each with its own control plane, share a cluster
  pool     a tenant's namespace is placed in a pool of super clusters, and its pods in one of them each
  burst    pods of one cluster run in it and in another one, and move there
"""
DESCRIPTION = """\
Starts real Kubernetes clusters on this machine, prints each command with its output, and removes everything at the
end, or at Ctrl-C.
"""


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "demo",
        help="run demos on real clusters of this machine",
        description=DESCRIPTION,
        epilog=DEMOS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", nargs="?", choices=SHOWS, metavar="DEMO", help="one of the demos below (default: all)")
    parser.add_argument(
        "--keep", action="store_true", help="keep everything running at the end, until Ctrl-C (default false)"
    )
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    for name in [arguments.name] if arguments.name else SHOWS:
        async with stage.opened() as here:
            await SHOWS[name](here)
            if arguments.keep:
                await here.keep()
    return 0
