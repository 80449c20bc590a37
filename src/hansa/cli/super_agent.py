"""`hansa super-agent`: ends tenants' pods in a super cluster of a pool that is cut off from it."""

import argparse
from pathlib import Path
from typing import Any

from hansa.app import program, super_agent
from hansa.app.super_agent import SuperAgentSettings
from hansa.cli import log_flags
from hansa.kube.credentials.source import Source

EXAMPLES = """\
examples:
  hansa join r1 --agent --apply --meta-kubeconfig meta.kubeconfig
  hansa super-agent --kubeconfig r1.kubeconfig
"""
DESCRIPTION = """\
It runs in a super cluster of a pool and looks at the lease there, which vc-scheduler and vc-syncer renew. When that
ends, because neither of them reaches the cluster any more, the pods of tenants end here, before they begin elsewhere.
Nothing happens without a lease, nor while the API server of the cluster itself does not answer.
"""


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "super-agent",
        help="end pods of tenants in a super cluster that is cut off from its pool (VirtualCluster)",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="the super cluster's (default: as kubectl, or the pod's own)"
    )
    parser.add_argument("--metrics-addr", default="", metavar="HOST:PORT", help="serve /metrics, /healthz and /readyz")
    log_flags.add_to(parser)
    parser.set_defaults(run=_run, loop_factory=program.new_loop)


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    await super_agent.run(SuperAgentSettings(Source(arguments.kubeconfig), arguments.metrics_addr))
    return 0
