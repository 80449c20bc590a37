"""The `hansa` command: runs a subcommand, and maps expected errors to a message and an exit code."""

import argparse
import asyncio
import importlib
import os
import signal
import sys
from collections.abc import Sequence

import hansa
from hansa.cli import completing
from hansa.runtime.errors import HansaError

# Each is a module that is imported only when its command is used, since all imports together take long.
COMMANDS = (
    *("agent", "completion", "demo", "descheduler", "doctor", "explain", "install", "join", "leave", "local"),
    *("multi-scheduler", "status", "super-agent", "tenants", "uninstall", "vc-manager", "vc-scheduler", "vc-syncer"),
    *("virtual-node", "vn-agent", "webhook", "whatif"),
)
INTERRUPTED = 128 + signal.SIGINT


def main(argv: Sequence[str] | None = None, *, program: str = "hansa") -> int:
    """Run the command; the result is the exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    top = parser(arguments or completing.words(), program=program)
    completing.answer(top)
    return execute(program, top.parse_args(arguments))


def kubectl_hansa() -> int:
    """The same command as a plugin of kubectl."""
    return main(program="kubectl hansa")


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


def parser(arguments: Sequence[str], *, program: str = "hansa") -> argparse.ArgumentParser:
    """The command line; of a command that the arguments begin with only that one, as the others take long to import."""
    top = argparse.ArgumentParser(prog=program, description="Syncs workloads between Kubernetes clusters.")
    top.add_argument("--version", action="version", version=f"hansa {hansa.__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    top.set_defaults(loop_factory=None)
    for name in [name for name in arguments[:1] if name in COMMANDS] or COMMANDS:
        importlib.import_module(f"hansa.cli.{name.replace('-', '_')}").add_to(commands)
    return top


if __name__ == "__main__":
    sys.exit(main())
