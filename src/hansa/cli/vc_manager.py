"""`hansa vc-manager`: runs a control plane for each VirtualCluster."""

import argparse
import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hansa.app import program, vc_manager
from hansa.app.vc_manager import ManagerSettings
from hansa.cli import component_flags, feature_gates, go_values, log_flags, unused_flags, upstream_flags
from hansa.kube import certificates
from hansa.kube.credentials.source import CredentialSource
from hansa.runtime.errors import HansaError
from hansa.tenancy import api
from hansa.tenancy.operator import service_cidrs
from hansa.tenancy.operator.etcd_storage import EtcdStorage, Medium
from hansa.tenancy.operator.process import provisioner as processes
from hansa.tenancy.operator.process.provisioner import ProcessProvisioner
from hansa.tenancy.operator.service_address import Access
from hansa.tenancy.operator.service_cidrs import ServiceCidrPool
from hansa.tenancy.operator.statefulset import StatefulSets

# Upstream's provisioner of StatefulSets is named "native", also in finalizers.
PROVISIONERS = {
    "process": ProcessProvisioner.name,
    "statefulset": StatefulSets.name,
    "native": StatefulSets.name,
    "existing": "existing",
}
MAX_NICE = 19  # the highest niceness of Linux
EXAMPLES = """\
examples:
  hansa vc-manager --kubeconfig meta.kubeconfig
  hansa vc-manager --provisioner statefulset --leader-elect
"""


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "vc-manager",
        help="run a control plane for each VirtualCluster",
        description="Watches VirtualClusters of the meta cluster and runs a control plane for each of them.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_meta(parser)
    parser.add_argument(
        "--provisioner",
        "--master-prov",
        choices=PROVISIONERS,
        default="process",
        help="how new control planes run: as processes of this machine, as StatefulSets of the meta cluster, or as"
        " existing clusters only; native is statefulset (default %(default)s)",
    )
    parser.add_argument(
        "--num-reconciles",
        type=_positive,
        default=10,
        metavar="N",
        help="number of concurrent reconciles (default %(default)s)",
    )
    parser.add_argument(
        "--provisioner-timeout",
        type=_time_limit,
        default=600.0,
        metavar="SECONDS",
        help="time limit of one reconcile of a VirtualCluster (default %(default)g)",
    )
    _add_ranges(parser)
    parser.add_argument(
        "--vn-agent-ca",
        type=Path,
        metavar="FILE",
        help="CA of the serving certificates of vn-agents, which API servers of tenants then verify (default: not"
        " verified)",
    )
    feature_gates.add_to(parser, has_pooling=False)
    _add_statefulsets(parser.add_argument_group("control planes as StatefulSets"))
    _add_process(parser.add_argument_group("control planes as processes"))
    component_flags.add_version(parser)
    component_flags.add_metrics(parser)
    component_flags.add_leader_election(parser, "--leader-elect-resource-namespace", switches=("--leader-election",))
    unused_flags.add_to(parser, "VirtualCluster's manager", upstream_flags.MANAGER)
    log_flags.add_to(parser)
    parser.set_defaults(run=_run, loop_factory=program.new_loop)


def _add_meta(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="kubeconfig of the meta cluster (default: as kubectl, or the pod's service account)",
    )
    parser.add_argument(
        "--context", default="", metavar="NAME", help="context of the kubeconfig (default: the current context)"
    )
    go_values.add_negatable(parser, "--install", help="install CustomResourceDefinitions")
    parser.add_argument(
        "--sample-cluster-versions",
        nargs="?",
        type=go_values.boolean,
        const=True,
        metavar="true|false",
        help="create sample ClusterVersions that are missing; with --install=false only if given (default true)",
    )


def _add_ranges(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--service-range",
        type=_network,
        default=service_cidrs.DEFAULT_RANGE,
        metavar="CIDR",
        help="range from which each VirtualCluster without spec.serviceCidr gets a subnet (default %(default)s)",
    )
    parser.add_argument(
        "--service-prefix",
        type=int,
        default=service_cidrs.DEFAULT_PREFIX,
        metavar="BITS",
        help="prefix length of the subnets of --service-range (default %(default)s)",
    )


def _add_statefulsets(group: Any) -> None:
    group.add_argument(
        "--etcd-storage",
        choices=tuple(map(str, Medium)),
        default=str(Medium.CLAIM),
        help="where etcd of new tenants keeps its data: in the claims of the ClusterVersion, or in an emptyDir, which"
        " is lost with the pod (default %(default)s)",
    )
    group.add_argument(
        "--etcd-storage-class",
        default="",
        metavar="NAME",
        help="StorageClass of claims that name none (default: the cluster's default StorageClass)",
    )
    group.add_argument(
        "--kubeconfig-address",
        choices=tuple(map(str, Access)),
        default=str(Access.SERVICE),
        help="address of API servers in tenants' kubeconfigs, which vc-syncer uses: the cluster IP of the Service, or,"
        " from outside of the cluster, a node's port or the load balancer (default %(default)s)",
    )


def _add_process(group: Any) -> None:
    group.add_argument(
        "--state",
        type=Path,
        metavar="DIR",
        help="folder of data, keys and logs (default $XDG_STATE_HOME/hansa-tenants, otherwise"
        " ~/.local/state/hansa-tenants)",
    )
    group.add_argument(
        "--address", type=_address, default="127.0.0.1", help="IP address of API servers (default %(default)s)"
    )
    group.add_argument(
        "--etcd",
        choices=("own", "shared"),
        default="own",
        help="an etcd for each new tenant, or one for all new tenants (default %(default)s)",
    )
    go_values.add_boolean(group, "--etcd-fast", default=False, help="start etcd without fsync, for tests")
    group.add_argument(
        "--tenant-nice",
        type=_nice,
        default=0,
        metavar="N",
        help=f"niceness of new control plane processes, 0 to {MAX_NICE} (default %(default)s)",
    )
    group.add_argument(
        "--binaries",
        type=Path,
        metavar="DIR",
        help="folder with a subfolder of binaries for each value of the ClusterVersion annotation hansa.dev/binaries"
        " (default: the binaries of hansa local)",
    )


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    await vc_manager.run(read(arguments, os.environ))
    return 0


def read(arguments: argparse.Namespace, environment: Mapping[str, str]) -> ManagerSettings:
    """The settings given by the flags."""
    process = processes.ProcessSettings(
        state=(arguments.state or default_state(environment)).absolute(),
        address=arguments.address,
        is_etcd_shared=arguments.etcd == "shared",
        is_etcd_fast=arguments.etcd_fast,
        nice=arguments.tenant_nice,
        vn_agent_ca=arguments.vn_agent_ca.absolute() if arguments.vn_agent_ca else None,
        versions=arguments.binaries.absolute() if arguments.binaries else None,
    )
    return ManagerSettings(
        meta=CredentialSource(arguments.kubeconfig, arguments.context),
        provisioner=PROVISIONERS[arguments.provisioner],
        process=process,
        pool=ServiceCidrPool(arguments.service_range, arguments.service_prefix),
        vn_agent_ca=_certificates(arguments.vn_agent_ca),
        storage=EtcdStorage(Medium(arguments.etcd_storage), arguments.etcd_storage_class),
        access=Access(arguments.kubeconfig_address),
        workers=arguments.num_reconciles,
        deadline=arguments.provisioner_timeout,
        is_installed=arguments.install,
        has_samples=arguments.install
        if arguments.sample_cluster_versions is None
        else arguments.sample_cluster_versions,
        metrics_address=arguments.metrics_addr,
        election_namespace=component_flags.election_namespace(arguments),
    )


def default_state(environment: Mapping[str, str]) -> Path:
    """The folder of control planes, without --state."""
    home = environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "hansa-tenants"


def _certificates(path: Path | None) -> bytes:
    """The content of --vn-agent-ca. An API server with an invalid one would not start."""
    try:
        return certificates.bundle(path.read_bytes()) if path else b""
    except (OSError, ValueError) as error:
        raise HansaError(f"--vn-agent-ca {path} cannot be used: {error}; give a file with PEM certificates") from None


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not a positive integer')
    return int(text)


def _time_limit(text: str) -> float:
    if (limit := go_values.seconds(text)) <= 0:
        raise argparse.ArgumentTypeError(f'"{text}" is not positive')
    return limit


def _nice(text: str) -> int:
    if not text.isdecimal() or int(text) > MAX_NICE:
        raise argparse.ArgumentTypeError(f'"{text}" is not an integer from 0 to {MAX_NICE}')
    return int(text)


def _network(text: str) -> api.Network:
    try:
        return api.network(text)
    except HansaError:
        raise argparse.ArgumentTypeError(f'"{text}" is not a CIDR such as {service_cidrs.DEFAULT_RANGE}') from None


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is not an IP address') from None
