"""The `hansa` command: finds the subcommand, runs it, and turns expected errors into one sentence and an exit code."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Sequence

import hansa
from hansa.cli import local, virtual_node, webhook
from hansa.runtime.errors import HansaError

INTERRUPTED = 128 + signal.SIGINT


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the result is the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        with asyncio.Runner(loop_factory=arguments.loop_factory) as runner:
            result: int = runner.run(arguments.run(arguments))
    except HansaError as error:
        print(f"hansa: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("hansa: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever reads our output has seen enough; nothing may be written to it when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return result


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hansa", description="Joins Kubernetes clusters into a league.")
    parser.add_argument("--version", action="version", version=f"hansa {hansa.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    parser.set_defaults(loop_factory=None)
    local.add_to(commands)
    virtual_node.add_to(commands)
    webhook.add_to(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
