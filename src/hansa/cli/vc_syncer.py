"""`hansa vc-syncer`: syncs tenants' objects to a super cluster or a pool of them, and their status back."""

import argparse
from pathlib import Path
from typing import Any

from hansa.app import program, vc_syncer
from hansa.app.vc_syncer import SyncerSettings
from hansa.cli import (
    component_flags,
    feature_gates,
    go_values,
    log_flags,
    loss_flags,
    reach_flags,
    tenant_flags,
    unused_flags,
    upstream_flags,
)
from hansa.kube.credentials.source import CredentialSource
from hansa.model.translation.tenant.nodes import VirtualNodeSettings
from hansa.model.translation.tenant.tenant_settings import (
    POD_SECURITY_LEVELS,
    Allowance,
    PodSecurity,
    TenantSettings,
)
from hansa.modes import virtualcluster_settings
from hansa.modes.virtualcluster_settings import InvalidSettings, PoolSettings
from hansa.modes.virtualcluster_settings import VirtualClusterSettings as ModeSettings

EXAMPLES = """\
examples:
  hansa vc-syncer --super-master-kubeconfig super.kubeconfig
  hansa vc-syncer --meta-cluster-kubeconfig meta.kubeconfig --super-master-kubeconfig super.kubeconfig
  hansa vc-syncer --meta-cluster-kubeconfig meta.kubeconfig --pool
"""
META_FLAG, SUPER_FLAG = "--meta-cluster-kubeconfig", "--super-master-kubeconfig"


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "vc-syncer",
        help="sync objects of tenants to a super cluster (VirtualCluster)",
        description="Syncs pods and the objects that they need of each running VirtualCluster to the super cluster,"
        " and their status back.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    clusters = parser.add_argument_group(
        "clusters",
        "One kubeconfig is used for both clusters, and without any that of kubectl or the pod's service account.",
    )
    clusters.add_argument(
        META_FLAG,
        type=Path,
        metavar="FILE",
        help="kubeconfig of the meta cluster, which has the VirtualClusters",
    )
    clusters.add_argument(
        SUPER_FLAG, type=Path, metavar="FILE", help="kubeconfig of the super cluster, which runs pods"
    )
    go_values.add_boolean(
        clusters,
        "--deployment-on-meta",
        default=False,
        help="run in the meta cluster: use the pod's service account for it if --meta-cluster-kubeconfig is not given",
    )
    _add_pool(parser.add_argument_group("pool of super clusters"))
    parser.add_argument(
        "--syncer-name",
        default="vc",
        metavar="NAME",
        help="prefix of the name of the leader election's Lease (default %(default)s)",
    )
    _add_policies(parser.add_argument_group("all tenants"))
    component_flags.add_version(parser)
    component_flags.add_metrics(parser)
    component_flags.add_leader_election(
        parser,
        "--leader-elect-resource-namespace",
        leases="the Leases of leader election, of replicas that share the tenants, and of reachability reports",
    )
    go_values.add_boolean(
        parser,
        "--share-tenants",
        default=False,
        help="serve a share of the tenants: all processes with this flag and the same --syncer-name share them, by"
        " Leases in --leader-elect-namespace. The share of a process that ends is served by others at once, that of one"
        " that dies or freezes after 8 seconds. Excludes --leader-elect",
    )
    unused_flags.add_to(parser, "VirtualCluster's syncer", upstream_flags.SYNCER)
    log_flags.add_to(parser)
    parser.set_defaults(run=_run, loop_factory=program.new_loop)


def _add_pool(group: Any) -> None:
    go_values.add_boolean(
        group,
        "--pool",
        default=False,
        help="sync to all super clusters that joined the meta cluster, instead of to one",
    )
    feature_gates.add_to(group, has_pooling=True)
    go_values.add_boolean(
        group,
        "--networks-joined",
        default=False,
        help="pod IPs of all super clusters are routable between them",
    )
    loss_flags.add_to(group, effect="its routes are removed")
    go_values.add_negatable(group, "--install", help="install CustomResourceDefinitions")


def _add_policies(group: Any) -> None:
    group.add_argument(
        "--extra-syncing-resources",
        default="",
        metavar="NAMES",
        help="accepted for compatibility, no effect: Ingresses and NetworkPolicies are always synced",
    )
    group.add_argument(
        "--allow",
        default="",
        metavar="NAMES",
        help=f"comma-separated restrictions of pods and Services to lift: {', '.join(Allowance)} (default none)",
    )
    group.add_argument(
        "--pod-security",
        default=PodSecurity.BASELINE,
        choices=POD_SECURITY_LEVELS,
        help="the Pod Security Standard that pods must meet, except for what is allowed (default %(default)s)",
    )
    go_values.add_negatable(
        group,
        "--pod-security-labels",
        help="label tenants' namespaces with that standard, so that the super cluster's own admission enforces it, too",
    )
    group.add_argument(
        "--default-opaque-meta-domains",
        default=",".join(TenantSettings("").opaque_domains),
        metavar="DOMAINS",
        help="comma-separated suffixes: the pattern * of --synced-annotations does not match annotations whose domain"
        " has one (default %(default)s)",
    )
    tenant_flags.add_to(group)
    group.add_argument(
        "--dns-options",
        default="ndots=5",
        metavar="NAME=VALUE,…",
        help="resolv.conf options of synced pods (default %(default)s)",
    )
    reach_flags.add_to(group)
    group.add_argument(
        "--schedulers",
        default="",
        metavar="NAMES",
        help="comma-separated schedulers of the super cluster that pods may name (default: all pods use the default"
        " scheduler)",
    )
    _add_limits(group)
    _add_nodes(group)


def _add_limits(group: Any) -> None:
    group.add_argument(
        "--limits",
        default="",
        metavar="NAME=AMOUNT,…",
        help="comma-separated limits of what a tenant has in a super cluster; a ClusterVersion and a VirtualCluster can"
        f" change them (default {virtualcluster_settings.shown_limits()})",
    )
    go_values.add_boolean(
        group,
        "--sync-unused",
        default=True,
        help="also sync ConfigMaps and Secrets that nothing refers to (default true)",
    )


def _add_nodes(group: Any) -> None:
    """Virtual nodes of tenants, and the kubelet API that they point to."""
    group.add_argument(
        "--extra-node-labels",
        default="",
        metavar="KEYS",
        help="comma-separated labels of super cluster nodes to show on virtual nodes, in addition to"
        " kubernetes.io/hostname, arch and os (default none)",
    )
    group.add_argument(
        "--opaque-taint-keys",
        default="",
        metavar="KEYS",
        help="comma-separated taints of super cluster nodes to show on virtual nodes (default none)",
    )
    group.add_argument(
        "--node-retention",
        "--nodes-linger",
        type=go_values.seconds,
        default=120.0,
        metavar="SECONDS",
        help="how long a virtual node stays after the tenant's last pod on it; --nodes-linger is an alias of"
        " --node-retention (default %(default)g)",
    )
    group.add_argument(
        "--vn-agent-port",
        type=component_flags.port,
        default=10550,
        metavar="PORT",
        help="kubelet port of virtual nodes, for logs and exec (default %(default)s)",
    )
    group.add_argument(
        "--vn-agent-address",
        default="",
        metavar="[ID=]IP[:PORT],…",
        help="address of the vn-agent that serves all virtual nodes; in a pool, for each super cluster after its id"
        " (default: each node has its own)",
    )


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    await vc_syncer.run(read(arguments))
    return 0


def read(arguments: argparse.Namespace) -> SyncerSettings:
    """The settings given by the flags. One kubeconfig is used for both clusters."""
    meta, below = arguments.meta_cluster_kubeconfig, arguments.super_master_kubeconfig
    nodes = VirtualNodeSettings(
        labels=frozenset(_names(arguments.extra_node_labels)),
        taints=frozenset(_names(arguments.opaque_taint_keys)),
        port=arguments.vn_agent_port,
        agents=virtualcluster_settings.agents(arguments.vn_agent_address, arguments.vn_agent_port),
    )
    virtualcluster_settings.check_extra(_names(arguments.extra_syncing_resources))
    tenants = TenantSettings(
        "",
        opaque_domains=tuple(_names(arguments.default_opaque_meta_domains)),
        allowed=virtualcluster_settings.allowances(_names(arguments.allow)),
        pod_security=PodSecurity(arguments.pod_security),
        is_pod_security_labelled=arguments.pod_security_labels,
        dns_options=virtualcluster_settings.dns_options(arguments.dns_options),
        schedulers=frozenset(_names(arguments.schedulers)),
        isolation=tenant_flags.isolation(arguments),
        lists=tenant_flags.lists(arguments),
        are_networks_joined=arguments.networks_joined,
        opaque_labels=tenant_flags.opaque_labels(arguments),
        limits=virtualcluster_settings.limits_of_tenants(_names(arguments.limits)),
        sync_unused=arguments.sync_unused,
    )
    is_separate = bool(meta and below and meta.absolute() != below.absolute()) or arguments.deployment_on_meta
    only = CredentialSource(below or meta, flag=META_FLAG if meta and not below else SUPER_FLAG)
    return SyncerSettings(
        super_cluster=None if arguments.pool else only,
        meta=CredentialSource(meta, flag=META_FLAG) if is_separate or arguments.pool else None,
        mode=ModeSettings(
            isolates=arguments.isolate_tenants,
            nodes=nodes,
            node_retention=arguments.node_retention,
            pool=_pool(arguments),
        ),
        lost_after=arguments.lost_after,
        fence_grace=loss_flags.fence_grace(arguments),
        is_installed=arguments.install,
        tenants=tenants,
        relay=arguments.api_relay_address,
        dns=reach_flags.dns(arguments),
        name=arguments.syncer_name,
        metrics_address=arguments.metrics_addr,
        election_namespace=component_flags.election_namespace(arguments),
        sharing_namespace=_sharing_namespace(arguments),
        report_namespace=arguments.leader_elect_namespace,
    )


def _sharing_namespace(arguments: argparse.Namespace) -> str:
    if not arguments.share_tenants:
        return ""
    if arguments.leader_elect:
        raise InvalidSettings(
            "use --share-tenants, by which all replicas are active, or --leader-elect, by which one is, but not both"
        )
    return str(arguments.leader_elect_namespace)


def _pool(arguments: argparse.Namespace) -> PoolSettings | None:
    is_one_of_many = arguments.feature_gates.get(feature_gates.POOLING, False)
    if arguments.pool and (is_one_of_many or arguments.super_master_kubeconfig):
        raise InvalidSettings(
            f"use --pool for all super clusters, or --super-master-kubeconfig and {feature_gates.POOLING}=true for"
            " one, but not both"
        )
    return PoolSettings(are_networks_joined=arguments.networks_joined) if is_one_of_many or arguments.pool else None


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
