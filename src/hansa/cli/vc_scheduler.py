"""`hansa vc-scheduler`: places tenants' namespaces and pods in a pool of super clusters."""

import argparse
from pathlib import Path
from typing import Any

from hansa.app import program, vc_scheduler
from hansa.app.vc_scheduler import SchedulerSettings
from hansa.cli import component_flags, go_values, log_flags, loss_flags, slice_flags, unused_flags, upstream_flags
from hansa.kube.credentials.source import CredentialSource

EXAMPLES = """\
examples:
  hansa vc-scheduler --kubeconfig meta.kubeconfig
  hansa vc-scheduler --kubeconfig meta.kubeconfig --policy pack --headroom 10% --slice '{"cpu":"1","memory":"2Gi"}'
"""


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "vc-scheduler",
        help="place namespaces and pods of tenants in a pool of super clusters (VirtualCluster)",
        description="Divides the quota of each tenant namespace into slices, places them in the super clusters of the"
        " pool,\nand assigns each pod to a super cluster with a slice of its namespace.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--kubeconfig",
        "--meta-master-kubeconfig",
        type=Path,
        metavar="FILE",
        help="kubeconfig of the meta cluster (default: as kubectl, or the pod's service account)",
    )
    slice_flags.add_to(parser)
    loss_flags.add_to(parser, effect="its slices are placed elsewhere")
    go_values.add_negatable(parser, "--install", help="install CustomResourceDefinitions")
    component_flags.add_version(parser)
    component_flags.add_metrics(parser)
    component_flags.add_leader_election(
        parser,
        "--leader-elect-resource-namespace",
        leases="the Leases of leader election and of reachability reports",
    )
    unused_flags.add_to(parser, "VirtualCluster's scheduler", upstream_flags.SCHEDULER)
    log_flags.add_to(parser)
    parser.set_defaults(run=_run, loop_factory=program.new_loop)


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    await vc_scheduler.run(read(arguments))
    return 0


def read(arguments: argparse.Namespace) -> SchedulerSettings:
    """The settings given by the flags."""
    return SchedulerSettings(
        meta=CredentialSource(arguments.kubeconfig),
        placing=slice_flags.placing(arguments),
        headroom=slice_flags.headroom(arguments),
        lost_after=arguments.lost_after,
        fence_grace=loss_flags.fence_grace(arguments),
        is_installed=arguments.install,
        metrics_address=arguments.metrics_addr,
        election_namespace=component_flags.election_namespace(arguments),
        report_namespace=arguments.leader_elect_namespace,
    )
