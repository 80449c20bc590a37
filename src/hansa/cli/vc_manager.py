"""`hansa vc-manager`: gives each VirtualCluster a control plane of its own."""

import argparse
import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hansa.app import program, vc_manager
from hansa.app.vc_manager import ManagerSettings
from hansa.cli import log_flags
from hansa.kube.credentials.source import Source
from hansa.runtime.errors import HansaError
from hansa.tenancy import api
from hansa.tenancy.operator import service_cidrs
from hansa.tenancy.operator.process import provisioner as processes
from hansa.tenancy.operator.process.provisioner import ProcessProvisioner
from hansa.tenancy.operator.service_cidrs import ServiceCidrPool
from hansa.tenancy.operator.statefulset import StatefulSets

# Upstream calls its StatefulSets native; finalizers keep that name.
PROVISIONERS = {
    "process": ProcessProvisioner.name,
    "statefulset": StatefulSets.name,
    "native": StatefulSets.name,
    "existing": "existing",
}
MAX_NICE = 19  # Linux has no higher one
EXAMPLES = """\
examples:
  hansa vc-manager --kubeconfig meta.kubeconfig
  hansa vc-manager --provisioner statefulset --leader-elect
"""


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "vc-manager",
        help="give each VirtualCluster a control plane of its own",
        description="Watches VirtualClusters of the meta cluster and runs a control plane for each of them.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="of the meta cluster (default: as kubectl)")
    parser.add_argument("--context", default="", metavar="NAME", help="of the kubeconfig (default: the current one)")
    parser.add_argument(
        "--provisioner",
        choices=PROVISIONERS,
        default="process",
        help="what control planes run on: processes here, StatefulSets of the meta cluster, or clusters that"
        " are there (default %(default)s)",
    )
    parser.add_argument(
        "--install",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="write definitions and samples (default yes)",
    )
    parser.add_argument(
        "--num-reconciles", type=_positive, default=10, metavar="N", help="at once (default %(default)s)"
    )
    parser.add_argument(
        "--provisioner-timeout",
        type=_positive,
        default=600,
        metavar="SECONDS",
        help="for one step (default %(default)s)",
    )
    parser.add_argument(
        "--service-range",
        type=_network,
        default=service_cidrs.DEFAULT_RANGE,
        metavar="CIDR",
        help="from which each tenant gets a part for its services, unless it names one (default %(default)s)",
    )
    parser.add_argument(
        "--service-prefix", type=int, default=service_cidrs.DEFAULT_PREFIX, metavar="BITS", help="(default %(default)s)"
    )
    _add_process(parser.add_argument_group("control planes as processes"))
    parser.add_argument("--metrics-addr", default="", metavar="HOST:PORT", help="serve /metrics, /healthz and /readyz")
    parser.add_argument("--leader-elect", action="store_true", help="work only while no other process does")
    parser.add_argument("--leader-elect-namespace", default="kube-system", metavar="NAMESPACE")
    log_flags.add_to(parser)
    parser.set_defaults(run=_run, loop_factory=program.new_loop)


def _add_process(group: Any) -> None:
    group.add_argument("--state", type=Path, metavar="DIR", help="where they keep everything")
    group.add_argument("--address", type=_address, default="127.0.0.1", help="of API servers (default %(default)s)")
    group.add_argument(
        "--etcd", choices=("own", "shared"), default="own", help="one each, or one for all (default own)"
    )
    group.add_argument("--etcd-fast", action="store_true", help="don't wait for the disk: for tests only")
    group.add_argument(
        "--tenant-nice",
        type=_nice,
        default=0,
        metavar="N",
        help="niceness of the programs that are started for tenants, 0 to 19: a higher one leaves more CPU to other"
        " programs of this machine (default 0)",
    )
    group.add_argument("--binaries", type=Path, metavar="DIR", help="folders of programs, which ClusterVersions name")


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    await vc_manager.run(read(arguments, os.environ))
    return 0


def read(arguments: argparse.Namespace, environment: Mapping[str, str]) -> ManagerSettings:
    """The settings that the flags say."""
    process = processes.ProcessSettings(
        state=(arguments.state or _default_state(environment)).absolute(),
        address=arguments.address,
        is_etcd_shared=arguments.etcd == "shared",
        is_etcd_fast=arguments.etcd_fast,
        nice=arguments.tenant_nice,
        versions=arguments.binaries.absolute() if arguments.binaries else None,
    )
    return ManagerSettings(
        meta=Source(arguments.kubeconfig, arguments.context),
        provisioner=PROVISIONERS[arguments.provisioner],
        process=process,
        pool=ServiceCidrPool(arguments.service_range, arguments.service_prefix),
        workers=arguments.num_reconciles,
        deadline=arguments.provisioner_timeout,
        is_installed=arguments.install,
        metrics_address=arguments.metrics_addr,
        election_namespace=arguments.leader_elect_namespace if arguments.leader_elect else "",
    )


def _default_state(environment: Mapping[str, str]) -> Path:
    home = environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "hansa-tenants"


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number from 1 on')
    return int(text)


def _nice(text: str) -> int:
    if not text.isdecimal() or int(text) > MAX_NICE:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number from 0 to {MAX_NICE}')
    return int(text)


def _network(text: str) -> api.Network:
    try:
        return api.network(text)
    except HansaError:
        raise argparse.ArgumentTypeError(
            f'"{text}" is no range of addresses such as {service_cidrs.DEFAULT_RANGE}'
        ) from None


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is not an address') from None
