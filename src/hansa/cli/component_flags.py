"""The flags that long-running commands share: the metrics server and leader election. Logging is in `log_flags`."""

import argparse


def add_metrics(parser: argparse.ArgumentParser) -> None:
    """Add --metrics-addr."""
    parser.add_argument(
        "--metrics-addr",
        default="",
        metavar="HOST:PORT",
        help="address to serve /metrics, /healthz and /readyz on (default: not served)",
    )


def add_leader_election(
    parser: argparse.ArgumentParser, *aliases: str, leases: str = "the leader election's Lease"
) -> None:
    """Add the flags of leader election; `aliases` are further names of --leader-elect-namespace."""
    parser.add_argument(
        "--leader-elect",
        nargs="?",
        type=true_or_false,
        const=True,
        default=False,
        metavar="true|false",
        help="use leader election, so that one of several processes is active (default false)",
    )
    parser.add_argument(
        "--leader-elect-namespace",
        *aliases,
        default="kube-system",
        metavar="NAMESPACE",
        help=f"namespace of {leases} (default %(default)s)",
    )


def election_namespace(arguments: argparse.Namespace) -> str:
    """The namespace of the Lease, or "" without leader election."""
    return str(arguments.leader_elect_namespace) if arguments.leader_elect else ""


def true_or_false(text: str) -> bool:
    """Parse the value of a flag that may be given as --flag or --flag=true|false, as Go programs accept it."""
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError(f'"{text}" is not true or false')
    return text == "true"
