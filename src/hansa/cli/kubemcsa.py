"""The `kubemcsa` command: exports a service account as a Secret with a kubeconfig, for a Target in another cluster."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

import hansa
from hansa.cli import completing
from hansa.cli import main as hansa_main
from hansa.engine.cluster import REQUEST_DEADLINE
from hansa.federation import exporting
from hansa.federation.exporting import Export
from hansa.kube.client import Client
from hansa.kube.credentials.source import CredentialSource
from hansa.kube.objects import NamespacedName
from hansa.runtime import clock
from hansa.runtime.errors import HansaError

EXAMPLES = """\
examples:
  kubemcsa export --context cluster2 -n default c1 --as c2 | kubectl --context cluster1 -n default apply -f -
  kubemcsa export --context kind-cluster2 c1 --as c2 --server https://172.17.0.3:6443
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the result is the exit code."""
    top = _parser()
    completing.answer(top)
    return hansa_main.execute("kubemcsa", top.parse_args(argv))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kubemcsa", description="Exports service accounts to other clusters.")
    parser.add_argument("--version", action="version", version=f"kubemcsa (hansa {hansa.__version__})")
    parser.set_defaults(loop_factory=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    export = commands.add_parser(
        "export",
        help="print a Secret with a kubeconfig of a service account",
        description="Prints the manifest of a Secret with the keys config (a kubeconfig), server, ca.crt, namespace"
        " and token. A token is created if the service account has none.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    export.add_argument("name", metavar="NAME", help="name of the service account")
    export.add_argument("--kubeconfig", type=Path, metavar="FILE", help="kubeconfig (default: as kubectl)")
    export.add_argument("--context", default="", help="context in the kubeconfig (default: its current context)")
    export.add_argument(
        "-n", "--namespace", default="", help="namespace of the service account (default: that of the context)"
    )
    export.add_argument(
        "--as",
        dest="export_name",
        default="",
        metavar="NAME",
        help="name of the printed Secret (default: that of the token's Secret)",
    )
    export.add_argument(
        "--server", default="", metavar="URL", help="URL by which the other cluster reaches this one (default: ours)"
    )
    export.add_argument(
        "--ca-file", type=Path, metavar="FILE", help="CA by which the other cluster verifies --server (default: ours)"
    )
    export.add_argument(
        "--duration",
        type=_seconds,
        default=0,
        metavar="SECONDS",
        help="lifetime of the token, at least 600 seconds (default: it does not expire)",
    )
    export.set_defaults(run=_export)
    return parser


async def _export(arguments: argparse.Namespace) -> int:
    access = await CredentialSource(arguments.kubeconfig, arguments.context).find()
    login = (await access.access()).login
    wanted = Export(
        account=NamespacedName(arguments.namespace or login.namespace, arguments.name),
        name=arguments.export_name,
        server=arguments.server,
        ca=_content(arguments.ca_file) if arguments.ca_file else b"",
        seconds=arguments.duration,
    )
    async with Client(access, user_agent=f"kubemcsa/{hansa.__version__}", deadline=REQUEST_DEADLINE) as client:
        secret = await exporting.export(client, login, wanted, clock=clock.SystemClock())
    print(yaml.safe_dump(secret, sort_keys=False), end="")
    return os.EX_OK


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise HansaError(f"cannot read --ca-file {path}: {error.strerror}") from None


def _seconds(text: str) -> int:
    if not text.isdecimal() or int(text) < 600:
        raise argparse.ArgumentTypeError(f'"{text}" is not a lifetime: use a number of seconds, at least 600')
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
