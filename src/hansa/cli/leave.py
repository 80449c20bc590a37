"""`hansa leave`: drains a super cluster and removes it from its pool."""

import argparse
import contextlib
from pathlib import Path
from typing import Any

from hansa.cli import join, log_flags
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.credentials.secret import SecretCredentials
from hansa.kube.credentials.source import CredentialSource
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.runtime.errors import HansaError
from hansa.scheduling.pooling import pool_members
from hansa.tenancy.pool import join_manifests, leaving
from hansa.tenancy.pool.leaving import Leaving

EXAMPLES = """\
examples:
  hansa leave r1 --meta-kubeconfig meta.kubeconfig
  hansa leave r1 --meta-kubeconfig meta.kubeconfig --kubeconfig r1.kubeconfig
"""


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "leave",
        help="drain a super cluster and remove it from its pool (VirtualCluster)",
        description="Cordons the super cluster, waits until its namespaces are placed elsewhere, and removes it from"
        " the meta cluster.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("id", metavar="ID", help="id of the super cluster in placements")
    join.add_meta(parser)
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="kubeconfig of the super cluster, with an administrator's rights, to delete our service account and agent"
        " there (default: they stay)",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="how long to wait until it is drained (default %(default)g)",
    )
    parser.add_argument(
        "--force", action="store_true", help="remove it although it is not drained or is unreachable (default false)"
    )
    log_flags.add_to(parser)
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    async with join.client(await CredentialSource(arguments.meta_kubeconfig, flag="--meta-kubeconfig").find()) as meta:
        clusters = await pool_members.resource(meta, is_installed=False)
        found = await _found(meta, clusters, arguments)
        going = Leaving(found, clusters, meta, join.report)
        await going.cordon()
        if arguments.force:
            await going.remove()
        else:
            await _drain(going, deadline=arguments.timeout)
    if arguments.kubeconfig is None:
        join.report(
            f"service account {join_manifests.ACCOUNT} stays in the super cluster, since --kubeconfig is not given;"
            " delete it by hand"
        )
        return 0
    async with join.client(await join.super_credentials(arguments.id, arguments.kubeconfig)) as below:
        await leaving.remove_account(below)
    return 0


async def _found(meta: Client, clusters: Resource, arguments: argparse.Namespace) -> Object:
    key = NamespacedName(arguments.namespace, arguments.id)
    with contextlib.suppress(errors.NotFound):
        return await meta.get(clusters, key.name, namespace=key.namespace)
    if (found := await leaving.restore(meta, clusters, key)) is None:
        raise HansaError(f"super cluster {key.name} not found: the meta cluster has neither Cluster nor Secret {key}")
    join.report(f"Cluster {key} was deleted before; it is created again to drain it")
    return found


async def _drain(going: Leaving, *, deadline: float) -> None:
    place = going.cluster.key
    try:
        secret = await going.meta.get(resources.SECRETS, place.name, namespace=place.namespace)
    except errors.NotFound:
        raise HansaError(
            f"cannot check whether {place.name} is drained: Secret {place} with its kubeconfig is missing; create it"
            f' with "hansa join {place.name}", or use --force to remove the super cluster without this check'
        ) from None
    async with join.client(SecretCredentials(secret, key=join_manifests.SECRET_KEY)) as below:
        try:
            await below.get(resources.NAMESPACES, "kube-system")
        except errors.ApiError as error:
            raise HansaError(
                f"cannot check whether {place.name} is drained: {error}; --force removes it without this check"
            ) from None
        await going.drain(below, deadline=deadline)
        await going.remove()
        await going.free_ranges(below)
