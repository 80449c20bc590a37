"""The flags of `hansa explain` and `hansa whatif`: which clusters the question is about, and the output."""

import argparse
from pathlib import Path

from hansa.app.questions.reading import Where
from hansa.cli import log_flags, slice_flags
from hansa.kube.credentials.source import CredentialSource
from hansa.modes import lower_clusters_file
from hansa.modes.lower_clusters_file import LowerClusters


def add_to(parser: argparse.ArgumentParser, *, of: str) -> None:
    """Add the flags; `of` says which cluster --kubeconfig is for."""
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help=f"kubeconfig of {of} (default: as kubectl)")
    parser.add_argument("--context", default="", help="context of the kubeconfig (default: its current one)")
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="virtual nodes: the lower clusters, in the file of hansa multi-scheduler or of hansa virtual-node",
    )
    slice_flags.add_to(parser)
    parser.add_argument(
        "-o", "--output", choices=["text", "json"], default="text", help="output format (default %(default)s)"
    )
    log_flags.add_to(parser)


def add_tenant(parser: argparse.ArgumentParser) -> None:
    """Add the flags that are needed where --kubeconfig is of a tenant."""
    parser.add_argument(
        "--meta-cluster-kubeconfig",
        type=Path,
        metavar="FILE",
        help="tenants: kubeconfig of the cluster with the VirtualClusters (default with --meta-context: --kubeconfig)",
    )
    parser.add_argument("--meta-context", default="", metavar="CONTEXT", help="tenants: context of that kubeconfig")
    parser.add_argument(
        "--super-master-kubeconfig",
        type=Path,
        metavar="FILE",
        help="tenants: kubeconfig of the super cluster (default: the pool, or the cluster with the VirtualClusters)",
    )
    parser.add_argument(
        "--vc", default="", metavar="NAMESPACE/NAME", help="tenants: the VirtualCluster (default: found by its cluster)"
    )


def where(arguments: argparse.Namespace) -> Where:
    """The clusters that the flags name."""
    file = (
        LowerClusters(CredentialSource(), {})
        if arguments.config is None
        else lower_clusters_file.read(arguments.config)
    )
    is_given = arguments.kubeconfig is not None or arguments.context
    given = vars(arguments)
    meta, context = given.get("meta_cluster_kubeconfig"), given.get("meta_context", "")
    lowest = given.get("super_master_kubeconfig")
    return Where(
        cluster=CredentialSource(arguments.kubeconfig, arguments.context) if is_given else file.upper,
        lowers=file.lowers,
        meta=CredentialSource(meta or arguments.kubeconfig, context, flag="--meta-cluster-kubeconfig")
        if meta or context
        else None,
        super_cluster=CredentialSource(lowest, flag="--super-master-kubeconfig") if lowest else None,
        vc=given.get("vc", ""),
        placing=slice_flags.placing(arguments),
        headroom=slice_flags.headroom(arguments),
    )
