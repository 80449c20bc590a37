"""`hansa vn-agent`: serves the kubelet API of super nodes to tenants."""

import argparse
import ipaddress
import math
from pathlib import Path
from typing import Any

from hansa.app import program, vn_agent
from hansa.app.vn_agent import KubeletSettings, VnAgentSettings
from hansa.cli import component_flags, feature_gates, log_flags, unused_flags, upstream_flags
from hansa.kube.credentials.source import CredentialSource
from hansa.kubelet.certificates import CertificateFiles
from hansa.runtime.errors import HansaError

DESCRIPTION = """\
Serves logs, exec, attach and port-forward of pods in a super cluster to the tenants that own them. A tenant is known by
the client certificate of its API server, which vc-manager records on its VirtualCluster.
"""
EXAMPLES = """\
examples:
  hansa vn-agent --super-master-kubeconfig super.kubeconfig --address 10.0.0.5
  hansa vn-agent --node-name n1 --address 10.0.0.11 --kubelet-host 10.0.0.11 --kubelet-client-certificate client.crt \\
      --kubelet-client-key client.key --kubelet-certificate-authority ca.crt
"""
META_FLAG, SUPER_FLAG = "--meta-cluster-kubeconfig", "--super-master-kubeconfig"
KUBELET_FILES = ("kubelet_client_certificate", "kubelet_client_key", "kubelet_certificate_authority")
SERVING_FILES = ("tls_cert_file", "tls_private_key_file")
MIB = 2**20  # bytes


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "vn-agent",
        help="serve logs and exec of pods in a super cluster to tenants (VirtualCluster)",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _add_clusters(parser.add_argument_group("clusters", "One kubeconfig is used for both clusters."))
    _add_serving(parser.add_argument_group("serving"))
    _add_kubelet(
        parser.add_argument_group(
            "kubelet mode",
            "With these files, the kubelet of the node is called instead of the super cluster's API server.",
        )
    )
    feature_gates.add_to(parser, has_pooling=False)
    component_flags.add_version(parser)
    component_flags.add_metrics(parser)
    unused_flags.add_to(parser, "VirtualCluster's vn-agent", upstream_flags.VN_AGENT)
    log_flags.add_to(parser)
    parser.set_defaults(run=_run, loop_factory=program.new_loop)


def _add_clusters(group: Any) -> None:
    group.add_argument(
        META_FLAG, type=Path, metavar="FILE", help="kubeconfig of the meta cluster, which has the VirtualClusters"
    )
    group.add_argument(
        SUPER_FLAG,
        type=Path,
        metavar="FILE",
        help="kubeconfig of the super cluster (default: as kubectl, or the pod's service account)",
    )
    group.add_argument(
        "--node-name", default="", metavar="NAME", help="serve only pods of this node (default: of all nodes)"
    )


def _add_serving(group: Any) -> None:
    group.add_argument(
        "--address",
        type=_address,
        default="",
        metavar="IP",
        help="IP address to listen on, also that of the certificate (default: all; the certificate has the one that"
        " reaches the super cluster)",
    )
    group.add_argument(
        "--certificate-names",
        type=_names,
        default=(),
        metavar="LIST",
        help="comma-separated addresses and names by which tenants' API servers reach it, for the signed certificate,"
        " in addition to its own (default none)",
    )
    group.add_argument(
        "--port", type=component_flags.port, default=10550, metavar="PORT", help="port (default %(default)s)"
    )
    group.add_argument(
        "--tls-cert-file",
        type=Path,
        metavar="FILE",
        help="serving certificate (default: signed by the super cluster's signer kubernetes.io/kubelet-serving)",
    )
    group.add_argument("--tls-private-key-file", type=Path, metavar="FILE", help="key of the serving certificate")
    group.add_argument(
        "--tenant-connections",
        type=_positive,
        default=100,
        metavar="N",
        help="connections that one tenant may have open (default %(default)s)",
    )
    group.add_argument(
        "--tenant-bandwidth",
        type=_bandwidth,
        default=100.0 * MIB,
        metavar="MIB",
        help="MiB per second that one tenant may transfer, both directions together; 0 is not limited (default 100)",
    )


def _add_kubelet(group: Any) -> None:
    group.add_argument("--kubelet-client-certificate", type=Path, metavar="FILE", help="client certificate")
    group.add_argument("--kubelet-client-key", type=Path, metavar="FILE", help="key of the client certificate")
    group.add_argument(
        "--kubelet-certificate-authority", type=Path, metavar="FILE", help="CA of the kubelet's serving certificate"
    )
    group.add_argument(
        "--kubelet-host", default="127.0.0.1", metavar="HOST", help="address of the kubelet (default %(default)s)"
    )
    group.add_argument(
        "--kubelet-port",
        type=component_flags.port,
        default=10250,
        metavar="PORT",
        help="its port (default %(default)s)",
    )
    group.add_argument(
        "--kubelet-server-name",
        default="",
        metavar="NAME",
        help="name in the kubelet's serving certificate (default: --kubelet-host)",
    )


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    await vn_agent.run(read(arguments))
    return 0


def read(arguments: argparse.Namespace) -> VnAgentSettings:
    """The settings given by the flags. One kubeconfig is used for both clusters."""
    meta, below = arguments.meta_cluster_kubeconfig, arguments.super_master_kubeconfig
    return VnAgentSettings(
        super_cluster=CredentialSource(below or meta, flag=META_FLAG if meta and not below else SUPER_FLAG),
        meta=CredentialSource(meta, flag=META_FLAG) if meta and below else None,
        kubelet=_kubelet(arguments),
        serving=_serving(arguments),
        node=arguments.node_name,
        address=arguments.address,
        names=arguments.certificate_names,
        port=arguments.port,
        connections=arguments.tenant_connections,
        bandwidth=arguments.tenant_bandwidth,
        metrics_address=arguments.metrics_addr,
    )


def _kubelet(arguments: argparse.Namespace) -> KubeletSettings | None:
    files = _files(arguments, KUBELET_FILES)
    if not files:
        return None
    certificate, key, ca = files
    where = (arguments.kubelet_host, arguments.kubelet_port)
    return KubeletSettings(*where, certificate, key, ca, server_name=arguments.kubelet_server_name)


def _serving(arguments: argparse.Namespace) -> CertificateFiles | None:
    files = _files(arguments, SERVING_FILES)
    return CertificateFiles(*files) if files else None


def _files(arguments: argparse.Namespace, names: tuple[str, ...]) -> list[Path]:
    """The files of flags that are given together, or not at all."""
    given = {name: getattr(arguments, name) for name in names}
    if not any(given.values()):
        return []
    for name, path in given.items():
        flag = f"--{name.replace('_', '-')}"
        if path is None:
            raise HansaError(f"{flag} is missing: give all of {', '.join(_flags(names))}, or none of them")
        if not path.is_file():
            raise HansaError(f"{flag} {path} is not a file")
    return list(given.values())


def _flags(names: tuple[str, ...]) -> list[str]:
    return [f"--{name.replace('_', '-')}" for name in names]


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text)) if text else ""
    except ValueError:
        raise argparse.ArgumentTypeError(f'"{text}" is not an IP address') from None


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not a positive integer')
    return int(text)


def _bandwidth(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found < math.inf:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number of MiB per second')
    return found * MIB
