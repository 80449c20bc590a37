"""`hansa leave`: lets a super cluster leave its pool, after what is there went elsewhere."""

import argparse
from pathlib import Path
from typing import Any

from hansa.cli import join, log_flags
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.credentials.secret import SecretCredentials
from hansa.kube.credentials.source import Source
from hansa.kube.objects import Object
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
        help="let a super cluster leave its pool (VirtualCluster)",
        description="Nothing new is placed there, what is there is placed elsewhere, and then it is forgotten.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("id", metavar="ID", help="what placements call it")
    join.add_meta(parser)
    parser.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="an administrator's: to remove our account there, too"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="to wait until it is empty (default %(default)g)",
    )
    parser.add_argument("--force", action="store_true", help="forget it although it is not empty, or cannot be reached")
    log_flags.add_to(parser)
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    async with join.client(await Source(arguments.meta_kubeconfig).find()) as meta:
        clusters = await pool_members.resource(meta, is_installed=False)
        found = await _found(meta, clusters, arguments)
        going = Leaving(found, clusters, meta, join.tell)
        await going.close()
        if arguments.force:
            await going.forget()
        else:
            await _leave_empty(going, deadline=arguments.timeout)
    if arguments.kubeconfig is None:
        join.tell(
            f"service account {join_manifests.ACCOUNT} stays in the super cluster; with its --kubeconfig it is removed"
        )
        return 0
    async with join.client(await join.super_credentials(arguments.id, arguments.kubeconfig)) as below:
        await leaving.forget_account(below)
    return 0


async def _found(meta: Client, clusters: Resource, arguments: argparse.Namespace) -> Object:
    try:
        return await meta.get(clusters, arguments.id, namespace=arguments.namespace)
    except errors.NotFound:
        raise HansaError(
            f"there is no super cluster {arguments.id} in this pool: no Cluster {arguments.namespace}/{arguments.id}"
        ) from None


async def _leave_empty(going: Leaving, *, deadline: float) -> None:
    place = going.cluster.key
    secret = await going.meta.get(resources.SECRETS, place.name, namespace=place.namespace)
    async with join.client(SecretCredentials(secret, key=join_manifests.SECRET_KEY)) as below:
        try:
            await below.get(resources.NAMESPACES, "kube-system")
        except errors.ApiError as error:
            raise HansaError(
                f'{place.name} cannot be asked what is left there: {error}; "--force" forgets it all the same'
            ) from None
        await going.drain(below, deadline=deadline)
        await going.forget()
        await going.free_ranges(below)
