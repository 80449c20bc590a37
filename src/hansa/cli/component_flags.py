"""The flags that long-running commands share, the metrics server and leader election, and the types of flag values.

Logging is in `log_flags`, booleans and durations are in `go_values`.
"""

import argparse
from collections.abc import Iterable

import hansa
from hansa.cli import go_values

MAX_PORT = 65535


def add_metrics(parser: argparse.ArgumentParser) -> None:
    """Add --metrics-addr."""
    parser.add_argument(
        "--metrics-addr",
        type=_metrics_address,
        default="",
        metavar="HOST:PORT",
        help="address to serve /metrics, /healthz and /readyz on (default: not served)",
    )


def add_leader_election(
    parser: argparse.ArgumentParser,
    *aliases: str,
    switches: Iterable[str] = (),
    leases: str = "the leader election's Lease",
) -> None:
    """Add the flags of leader election.

    `aliases` are further names of --leader-elect-namespace, and `switches` of --leader-elect.
    """
    go_values.add_boolean(
        parser,
        "--leader-elect",
        *switches,
        default=False,
        help="use leader election, so that one of several processes is active",
    )
    parser.add_argument(
        "--leader-elect-namespace",
        *aliases,
        default="kube-system",
        metavar="NAMESPACE",
        help=f"namespace of {leases} (default %(default)s)",
    )


def add_version(parser: argparse.ArgumentParser) -> None:
    """Add --version."""
    parser.add_argument("--version", action="version", version=f"hansa {hansa.__version__}")


def election_namespace(arguments: argparse.Namespace) -> str:
    """The namespace of the Lease, or "" without leader election."""
    return str(arguments.leader_elect_namespace) if arguments.leader_elect else ""


def port(text: str) -> int:
    """Parse the port of a server that clients connect to."""
    return _port(text, 1)


def listening_port(text: str) -> int:
    """Parse a port to listen on; 0 takes any free port."""
    return _port(text, 0)


def _port(text: str, lowest: int) -> int:
    if not text.isdecimal() or not lowest <= int(text) <= MAX_PORT:
        raise argparse.ArgumentTypeError(f'"{text}" is not a port: use a number from {lowest} to {MAX_PORT}')
    return int(text)


def _metrics_address(text: str) -> str:
    _, colon, given = text.rpartition(":")
    if text and not (colon and given.isdecimal()):
        raise argparse.ArgumentTypeError(f'"{text}" is invalid: use HOST:PORT, e.g. 127.0.0.1:8080')
    if text and int(given) > MAX_PORT:
        raise argparse.ArgumentTypeError(f'"{text}" has an invalid port: use a number from 0 to {MAX_PORT}')
    return text
