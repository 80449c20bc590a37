"""`hansa install`: runs the programs of a mode in a cluster, as the Helm chart does."""

import argparse
import re
import sys
from pathlib import Path
from typing import Any

import hansa
from hansa.app.installation import rendering, waiting
from hansa.app.installation.installing import Installer
from hansa.app.installation.rendering import Installation, Mode
from hansa.app.program import agent
from hansa.cli import completing, go_values, log_flags
from hansa.kube.client import Client
from hansa.kube.credentials.source import CredentialSource

MODES = """\
modes:
  virtualcluster  control planes of tenants, whose pods run in this cluster
  pool            the meta cluster of a pool, whose super clusters "hansa join" adds
  tensile         the webhook of an upper cluster, and the rights of its virtual nodes
  tensile-lower   the service account for a virtual node of another cluster
  admiralty       the agent of a federation: this cluster is a source, a target, or both
"""
EXAMPLES = f"""\
{MODES}
examples:
  hansa install --context meta --mode pool --dry-run
  hansa install --context meta --mode pool --image registry.example.com/hansa:{hansa.__version__}

The manifests are those of the Helm chart with its default values; use the chart for others (docs/install.md).
"""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_IMAGE = re.compile(r"[\w./:@-]+")


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "install",
        help="install the programs of a mode in a cluster, and wait until they run",
        description="Applies the manifests of a mode, and waits until its programs run. Repeat it to upgrade.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_flags(parser)
    parser.add_argument(
        "--image",
        type=_image,
        default=f"hansa:{hansa.__version__}",
        help="container image of all programs (default %(default)s)",
    )
    parser.add_argument(
        "--wait", action=argparse.BooleanOptionalAction, default=True, help="wait until it runs (default true)"
    )
    parser.add_argument(
        "--force-conflicts",
        action="store_true",
        help="overwrite fields that others set, such as a number of replicas (default false)",
    )
    log_flags.add_to(parser)
    parser.set_defaults(run=_run)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of install and uninstall."""
    parser.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="kubeconfig of the cluster (default: as kubectl)"
    )
    context = parser.add_argument(
        "--context", default="", metavar="NAME", help="context of the kubeconfig (default: the current context)"
    )
    completing.with_contexts(context)
    parser.add_argument(
        "--mode", choices=[str(one) for one in Mode], required=True, help="what the cluster is for; see below"
    )
    parser.add_argument(
        "--namespace",
        "-n",
        type=_namespace,
        metavar="NAME",
        help="namespace of the programs (default: vc-manager, hansa-system or admiralty, by mode)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be done, and change nothing (default false)"
    )
    parser.add_argument(
        "--timeout",
        type=go_values.seconds,
        default=300.0,
        metavar="SECONDS",
        help="how long to wait (default %(default)g)",
    )


def installation(arguments: argparse.Namespace) -> Installation:
    """What the flags name."""
    mode = Mode(arguments.mode)
    return Installation(mode, arguments.namespace or rendering.DEFAULT_NAMESPACES[mode])


async def connect(arguments: argparse.Namespace) -> Client:
    """A client of the cluster."""
    access = await CredentialSource(arguments.kubeconfig, arguments.context).find()
    return Client(access, user_agent=agent("install"))


def report(line: str) -> None:
    """Print progress."""
    print(line, file=sys.stderr, flush=True)


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    wanted = installation(arguments)
    async with await connect(arguments) as client:
        installer = Installer(wanted, client, report, is_dry_run=arguments.dry_run, forces=arguments.force_conflicts)
        installed = await installer.install(arguments.image)
        if arguments.dry_run:
            return 0
        if arguments.wait:
            await waiting.ready(client, installed, deadline=arguments.timeout, report=report)
    report(f"mode {wanted.mode} {'runs' if arguments.wait else 'is installed'} in namespace {wanted.namespace}")
    return 0


def _namespace(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f'"{text}" is not the name of a namespace')
    return text


def _image(text: str) -> str:
    if not _IMAGE.fullmatch(text):
        raise argparse.ArgumentTypeError(f'"{text}" is not the name of an image')
    return text
