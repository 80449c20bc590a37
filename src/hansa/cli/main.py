"""The `hansa` command: runs a subcommand, and maps expected errors to a message and an exit code."""

import argparse
import asyncio
import importlib
import os
import signal
import sys
from collections.abc import Sequence

import hansa
from hansa.runtime.errors import HansaError

# Each is a module that is imported only when its command is used, since all imports together take long.
COMMANDS = (
    *("agent", "demo", "descheduler", "doctor", "explain", "join", "leave", "local", "multi-scheduler", "status"),
    *("super-agent", "vc-manager", "vc-scheduler", "vc-syncer", "virtual-node", "vn-agent", "webhook"),
)
INTERRUPTED = 128 + signal.SIGINT


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the result is the exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    return execute("hansa", _parser(arguments).parse_args(arguments))


def execute(program: str, arguments: argparse.Namespace) -> int:
    """Run a parsed command; the result is the exit code. `program` is the prefix of error messages."""
    try:
        with asyncio.Runner(loop_factory=arguments.loop_factory) as runner:
            result: int = runner.run(arguments.run(arguments))
    except HansaError as error:
        print(f"{program}: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{program}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader closed the pipe, as head does. The interpreter must not flush to it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return result


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hansa", description="Syncs workloads between Kubernetes clusters.")
    parser.add_argument("--version", action="version", version=f"hansa {hansa.__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    parser.set_defaults(loop_factory=None)
    for name in [name for name in arguments[:1] if name in COMMANDS] or COMMANDS:
        importlib.import_module(f"hansa.cli.{name.replace('-', '_')}").add_to(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
