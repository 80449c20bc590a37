"""`hansa vc-syncer`: carries objects of tenants to a super cluster, and what comes of them back."""

import argparse
from pathlib import Path
from typing import Any

from hansa.app import program, vc_syncer
from hansa.app.vc_syncer import SyncerSettings
from hansa.cli import log_flags
from hansa.kube.credentials.source import Source
from hansa.model.translation.tenant.nodes import VirtualNodeSettings
from hansa.model.translation.tenant.tenant_settings import Allowance, Tenant
from hansa.modes import virtualcluster_settings
from hansa.modes.virtualcluster_settings import InvalidSettings, Pool
from hansa.modes.virtualcluster_settings import VirtualClusterSettings as ModeSettings

EXAMPLES = """\
examples:
  hansa vc-syncer --super-master-kubeconfig super.kubeconfig
  hansa vc-syncer --meta-cluster-kubeconfig meta.kubeconfig --super-master-kubeconfig super.kubeconfig
  hansa vc-syncer --meta-cluster-kubeconfig meta.kubeconfig --pool
"""
POOLING = "SuperClusterPooling"
# Upstream's words for what is always so here, or is another program's.
UNUSED = (
    *("--super-master-timeout", "--disable-service-account-token", "--disable-service-links"),
    *("--vn-agent-namespace-name", "--vn-agent-label-selector", "--address", "--port"),
    *("--leader-elect-lease-duration", "--leader-elect-renew-deadline", "--leader-elect-retry-period"),
    *("--leader-elect-resource-lock", "--leader-elect-resource-name"),
)


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "vc-syncer",
        help="carry objects of tenants to a super cluster (VirtualCluster)",
        description="Pods and what they need of each VirtualCluster that runs are carried to the super cluster.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    clusters = parser.add_argument_group("clusters: without either the one that kubectl, or a pod, would use")
    clusters.add_argument("--meta-cluster-kubeconfig", type=Path, metavar="FILE", help="where VirtualClusters are")
    clusters.add_argument("--super-master-kubeconfig", type=Path, metavar="FILE", help="where pods run")
    clusters.add_argument(
        "--deployment-on-meta", nargs="?", type=_flag, const=True, default=False, help="it runs in the meta cluster"
    )
    _add_pool(parser.add_argument_group("a pool of super clusters"))
    parser.add_argument("--syncer-name", default="vc", metavar="NAME", help="of the election (default %(default)s)")
    _add_policies(parser.add_argument_group("for all tenants"))
    parser.add_argument("--metrics-addr", default="", metavar="HOST:PORT", help="serve /metrics, /healthz and /readyz")
    parser.add_argument(
        "--leader-elect", nargs="?", type=_flag, const=True, default=False, help="work only while no other process does"
    )
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


def _add_pool(group: Any) -> None:
    group.add_argument("--pool", action="store_true", help="serve all super clusters that joined the meta cluster")
    group.add_argument(
        "--feature-gates", default="", metavar="GATES", help=f"{POOLING}=true: serve one super cluster of a pool"
    )
    group.add_argument(
        "--networks-joined", action="store_true", help="pods of all super clusters reach each other directly"
    )
    group.add_argument(
        "--lost-after",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="for which a super cluster may be away before it is taken out (default %(default)g)",
    )
    group.add_argument(
        "--fence-grace",
        type=float,
        default=30.0,
        metavar="SECONDS",
        help="more, where an agent ends its pods first (hansa super-agent; default %(default)g)",
    )
    group.add_argument("--no-install", action="store_true", help="install no CustomResourceDefinitions")


def _add_policies(group: Any) -> None:
    group.add_argument(
        "--extra-syncing-resources", default="", metavar="NAMES", help="what travels as well: ingress, networkpolicy"
    )
    group.add_argument("--allow", default="", metavar="NAMES", help=f"of {', '.join(Allowance)}")
    group.add_argument(
        "--default-opaque-meta-domains",
        default=",".join(Tenant("").opaque_domains),
        metavar="DOMAINS",
        help="annotations whose domain ends so stay with the tenant (default %(default)s)",
    )
    group.add_argument("--dns-options", default="ndots=5", metavar="NAME=VALUE,…", help="of pods (default %(default)s)")
    group.add_argument("--extra-node-labels", default="", metavar="KEYS", help="that tenants see of super nodes")
    group.add_argument("--opaque-taint-keys", default="", metavar="KEYS", help="that tenants see of super nodes")
    group.add_argument(
        "--nodes-linger", type=float, default=120.0, metavar="SECONDS", help="after a tenant's last pod (default 120)"
    )
    group.add_argument("--vn-agent-port", type=int, default=10550, metavar="PORT", help="of tenants' nodes")
    group.add_argument("--schedulers", default="", metavar="NAMES", help="of the super cluster, that pods may name")


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    await vc_syncer.run(read(arguments))
    return 0


def read(arguments: argparse.Namespace) -> SyncerSettings:
    """The settings that the flags say. One kubeconfig is that of both clusters."""
    meta, below = arguments.meta_cluster_kubeconfig, arguments.super_master_kubeconfig
    look = VirtualNodeSettings(
        labels=frozenset(_names(arguments.extra_node_labels)),
        taints=frozenset(_names(arguments.opaque_taint_keys)),
        port=arguments.vn_agent_port,
    )
    kinds = virtualcluster_settings.extra(_names(arguments.extra_syncing_resources))  # noqa: S610 - not Django's
    tenants = Tenant(
        "",
        opaque_domains=tuple(_names(arguments.default_opaque_meta_domains)),
        allowed=virtualcluster_settings.allowances(_names(arguments.allow)),
        dns_options=virtualcluster_settings.dns_options(arguments.dns_options),
        schedulers=frozenset(_names(arguments.schedulers)),
    )
    is_apart = bool(meta and below and meta.absolute() != below.absolute()) or arguments.deployment_on_meta
    return SyncerSettings(
        super_cluster=None if arguments.pool else Source(below or meta),
        meta=Source(meta) if is_apart or arguments.pool else None,
        mode=ModeSettings(extra=kinds, nodes=look, node_retention=arguments.nodes_linger, pool=_pool(arguments)),
        lost_after=arguments.lost_after,
        fence_grace=arguments.fence_grace,
        is_installed=not arguments.no_install,
        tenants=tenants,
        name=arguments.syncer_name,
        metrics_address=arguments.metrics_addr,
        election_namespace=arguments.leader_elect_namespace if arguments.leader_elect else "",
        report_namespace=arguments.leader_elect_namespace,
    )


def _pool(arguments: argparse.Namespace) -> Pool | None:
    is_one_of_many = f"{POOLING}=true" in _names(arguments.feature_gates)
    if arguments.pool and (is_one_of_many or arguments.super_master_kubeconfig):
        raise InvalidSettings("--pool serves all super clusters: say it, or which one to serve, but not both")
    return Pool(are_networks_joined=arguments.networks_joined) if is_one_of_many or arguments.pool else None


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise argparse.ArgumentTypeError(f'"{text}" is neither true nor false')
    return text == "true"
