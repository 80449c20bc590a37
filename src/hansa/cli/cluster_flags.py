"""The flags of commands that read some clusters: contexts, a deadline and the output format."""

import argparse
from pathlib import Path

from hansa.app.status.overview import Asked
from hansa.cli import completing, go_values
from hansa.kube.credentials.source import CredentialSource

CURRENT = "current context"


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the flags of commands that read clusters."""
    add_connection(parser, "context of a cluster to read; repeatable (default: the current context)")
    parser.add_argument(
        "-o", "--output", choices=["text", "json"], default="text", help="output format (default %(default)s)"
    )


def add_connection(parser: argparse.ArgumentParser, contexts: str) -> None:
    """Add the flags that name clusters, and the time limit; `contexts` is the help of --context."""
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="kubeconfig of the clusters (default: as kubectl, or the pod's service account)",
    )
    context = parser.add_argument("--context", action="append", default=[], metavar="NAME", help=contexts)
    completing.with_contexts(context)
    parser.add_argument(
        "--timeout",
        type=_seconds,
        default=10.0,
        metavar="SECONDS",
        help="time limit of each request and topic (default %(default)g)",
    )


def asked(arguments: argparse.Namespace, *, default: bool = True) -> list[Asked]:
    """The clusters that the flags name; without any, the current context if `default`."""
    names = list(dict.fromkeys(arguments.context)) or ([""] if default or arguments.kubeconfig else [])
    return [Asked(name or CURRENT, CredentialSource(arguments.kubeconfig, name)) for name in names]


def _seconds(text: str) -> float:
    if (found := go_values.seconds(text)) <= 0:
        raise argparse.ArgumentTypeError(f'"{text}" is not positive')
    return found
