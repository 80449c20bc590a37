"""`hansa super-agent`: deletes tenants' pods in a super cluster that is cut off from its pool."""

import argparse
from pathlib import Path
from typing import Any

from hansa.app import program, super_agent
from hansa.app.super_agent import SuperAgentSettings
from hansa.cli import component_flags, log_flags
from hansa.kube.credentials.source import CredentialSource

EXAMPLES = """\
examples:
  hansa join r1 --agent --apply --meta-kubeconfig meta.kubeconfig
  hansa super-agent --kubeconfig r1.kubeconfig
"""
DESCRIPTION = """\
Runs in a super cluster of a pool and checks the Lease kube-system/hansa-fence, which vc-scheduler and vc-syncer renew.
When it expires, since neither of them reaches the cluster, the agent deletes the pods of tenants before replacements
start elsewhere. It deletes nothing without a Lease, or while the API server of the cluster does not answer.
"""


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "super-agent",
        help="delete pods of tenants in a super cluster that is cut off from its pool (VirtualCluster)",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="kubeconfig of the super cluster (default: as kubectl, or the pod's service account)",
    )
    component_flags.add_metrics(parser)
    log_flags.add_to(parser)
    parser.set_defaults(run=_run, loop_factory=program.new_loop)


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    await super_agent.run(SuperAgentSettings(CredentialSource(arguments.kubeconfig), arguments.metrics_addr))
    return 0
