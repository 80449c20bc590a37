"""`hansa demo`: shows on real clusters what Hansa does, and leaves nothing behind."""

import argparse
from typing import Any

from hansa.cli.demo import pool, stage

DEMOS = {"pool": (pool.show, "a pool of super clusters: namespaces in slices, pods in one cluster each")}


def add_to(commands: Any) -> None:
    """Add the subcommand and all below it."""
    parser = commands.add_parser(
        "demo",
        help="show on real clusters what Hansa does",
        description="Brings up real Kubernetes clusters on this machine, shows each command and what it says, and "
        "takes everything down again; Ctrl-C does that at any time.",
    )
    subcommands = parser.add_subparsers(title="demos", metavar="DEMO", required=True)
    for name, (show, what) in DEMOS.items():
        demo: argparse.ArgumentParser = subcommands.add_parser(name, help=what, description=f"Shows {what}.")
        demo.add_argument("--keep", action="store_true", help="leave everything running at the end, until Ctrl-C")
        demo.set_defaults(run=_run, show=show)


async def _run(arguments: argparse.Namespace) -> int:
    async with stage.opened() as here:
        await arguments.show(here)
        if arguments.keep:
            await here.keep()
    return 0
