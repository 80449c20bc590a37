"""`hansa vc-scheduler`: places namespaces and pods of tenants in a pool of super clusters."""

import argparse
from pathlib import Path
from typing import Any

from hansa.app import program, vc_scheduler
from hansa.app.vc_scheduler import SchedulerSettings
from hansa.cli import log_flags
from hansa.kube.credentials.source import Source
from hansa.scheduling.pooling import annotations
from hansa.scheduling.slicing import policies, pool, slices

EXAMPLES = """\
examples:
  hansa vc-scheduler --kubeconfig meta.kubeconfig
  hansa vc-scheduler --kubeconfig meta.kubeconfig --policy pack --headroom 10% --slice '{"cpu":"1","memory":"2Gi"}'
"""
UNUSED = (
    *("--meta-cluster", "--leader-elect-lease-duration", "--leader-elect-renew-deadline"),
    *("--leader-elect-retry-period", "--leader-elect-resource-lock", "--leader-elect-resource-name"),
)


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "vc-scheduler",
        help="place namespaces and pods of tenants in a pool of super clusters (VirtualCluster)",
        description="The quota of each tenant's namespace is laid out in slices over the super clusters of the pool, "
        "and each pod is given one of them.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--kubeconfig", "--meta-master-kubeconfig", type=Path, metavar="FILE", help="the meta cluster's (as kubectl)"
    )
    parser.add_argument("--slice", default="", metavar="JSON", help="of namespaces that name none (2 CPU, 4Gi memory)")
    parser.add_argument(
        "--policy", default="spread", help='spread, pack, or "prefer region=eu:10; …" (default %(default)s)'
    )
    parser.add_argument(
        "--headroom", default="", metavar="AMOUNT", help='what is kept free of each cluster: "10%%", "cpu=2"'
    )
    parser.add_argument("--all-or-nothing", action="store_true", help="place no slice of a namespace unless all fit")
    parser.add_argument("--evict", action="store_true", help="let a smaller quota take slices from running pods, too")
    parser.add_argument(
        "--lost-after",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="for which a super cluster may be away before all there is placed elsewhere (default %(default)g)",
    )
    parser.add_argument(
        "--fence-grace",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="more, where an agent ends its pods first (hansa super-agent; default %(default)g)",
    )
    parser.add_argument("--no-install", action="store_true", help="install no CustomResourceDefinitions")
    parser.add_argument("--metrics-addr", default="", metavar="HOST:PORT", help="serve /metrics, /healthz and /readyz")
    parser.add_argument("--leader-elect", action="store_true", help="work only while no other process does")
    parser.add_argument(
        "--leader-elect-namespace",
        "--leader-elect-resource-namespace",
        default="kube-system",
        metavar="NAMESPACE",
        help="of elections, and of what syncers report (default %(default)s)",
    )
    unused = parser.add_argument_group("accepted and not used", "Words of upstream that need not be said here.")
    for flag in UNUSED:
        unused.add_argument(flag, nargs="?", help=argparse.SUPPRESS)
    log_flags.add_to(parser)
    parser.set_defaults(run=_run, loop_factory=program.new_loop)


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    await vc_scheduler.run(read(arguments))
    return 0


def read(arguments: argparse.Namespace) -> SchedulerSettings:
    """The settings that the flags say."""
    return SchedulerSettings(
        meta=Source(arguments.kubeconfig),
        placing=annotations.PoolSettings(
            slice=slices.read(arguments.slice) if arguments.slice else slices.DEFAULT,
            policy=policies.read(arguments.policy),
            may_be_partial=not arguments.all_or_nothing,
            may_evict=arguments.evict,
        ),
        headroom=pool.headroom(arguments.headroom),
        lost_after=arguments.lost_after,
        fence_grace=arguments.fence_grace,
        is_installed=not arguments.no_install,
        metrics_address=arguments.metrics_addr,
        election_namespace=arguments.leader_elect_namespace if arguments.leader_elect else "",
        report_namespace=arguments.leader_elect_namespace,
    )
