"""`hansa join`: lets a cluster take part in a pool of super clusters."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hansa
from hansa.app.program import agent
from hansa.cli import log_flags
from hansa.kube import errors
from hansa.kube.client import Client
from hansa.kube.credentials import Credentials
from hansa.kube.credentials.source import Source
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.scheduling.pooling import pool_members
from hansa.tenancy.pool import cluster_id, join_manifests
from hansa.tenancy.pool.join_manifests import Joined
from hansa.tenancy.pool.joining import Joining

EXAMPLES = """\
examples:
  hansa join r1 --kubeconfig r1.kubeconfig
  hansa join kind-eu --id r1 --apply --meta-kubeconfig meta.kubeconfig
"""
DESCRIPTION = """\
A service account of Hansa, with the rights that it needs and no others, is made in the cluster. What the meta cluster
and the cluster have to know is written into the folder cluster_ID, or applied at once (--apply).
"""
CLUSTERS = Resource(pool_members.GROUP, pool_members.OURS, "clusters", kind="Cluster")
PRIVATE = 0o600
SECRET_WORDS = ("secret", "kubeconfig")  # in the names of files that nobody else may read


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "join",
        help="let a cluster take part in a pool of super clusters (VirtualCluster)",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("super", metavar="SUPER", help="a context of the kubeconfig, or any name for the cluster")
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="an administrator's (default: as kubectl)")
    parser.add_argument("--id", metavar="ID", help="what placements call it (default SUPER)")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="where files are written (default cluster_ID)")
    parser.add_argument("--apply", action="store_true", help="write no files: apply them")
    add_meta(parser)
    parser.add_argument(
        "--image", default=f"hansa:{hansa.__version__}", help="of syncer and agent (default %(default)s)"
    )
    parser.add_argument(
        "--without-syncer", action="store_true", help="make no Deployment of vc-syncer: one process serves the pool"
    )
    parser.add_argument(
        "--agent", action="store_true", help="let an agent end the pods of tenants there when the cluster is cut off"
    )
    log_flags.add_to(parser)
    parser.set_defaults(run=_run)


def add_meta(parser: argparse.ArgumentParser) -> None:
    """The flags that say where the pool is."""
    parser.add_argument("--meta-kubeconfig", type=Path, metavar="FILE", help="the meta cluster's (default: as kubectl)")
    parser.add_argument("--namespace", "-n", default="default", help="of the Cluster (default %(default)s)")


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    id_ = cluster_id.checked(arguments.id or arguments.super)
    credentials = await super_credentials(arguments.super, arguments.kubeconfig)
    async with client(credentials) as below:
        access = await credentials.access()
        joining = Joining(id_, below, access.login)
        if arguments.apply:
            await _apply(joining, arguments)
        else:
            joined = await joining.prepare(CLUSTERS, None, namespace=arguments.namespace, image=arguments.image)
            files = joined.files(has_syncer=not arguments.without_syncer, has_agent=arguments.agent)
            _write(joined, files, arguments.output or Path(f"cluster_{id_}"))
    return 0


async def _apply(joining: Joining, arguments: argparse.Namespace) -> None:
    async with client(await Source(arguments.meta_kubeconfig).find()) as meta:
        clusters = await pool_members.resource(meta)
        joined = await joining.prepare(clusters, meta, namespace=arguments.namespace, image=arguments.image)
        await joining.apply(joined, meta, has_syncer=not arguments.without_syncer, has_agent=arguments.agent)
    tell(f"{joining.id} has joined the pool")


def _write(joined: Joined, files: Mapping[str, list[Object]], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    texts = {name: join_manifests.dumped(objects) for name, objects in files.items()}
    for name, text in sorted((texts | {"kubeconfig": joined.kubeconfig}).items()):
        path = folder / name
        path.touch(mode=PRIVATE if any(word in name for word in SECRET_WORDS) else 0o644)
        path.write_text(text)
        tell(f"{path} was written")
    below = " and ".join(str(folder / name) for name in sorted(join_manifests.SUPER_FILES & files.keys()))
    tell(
        f"apply {below} to the super cluster and the others to the meta cluster; the service"
        f" account {join_manifests.ACCOUNT}, whose kubeconfig this is, is in the super cluster already"
    )


async def super_credentials(name: str, path: Path | None) -> Credentials:
    """An administrator's way into the super cluster: the context of its name, or the current one."""
    try:
        return await Source(path, context=name).find()
    except errors.BadCredentials:
        if path is None:
            raise  # the current context of a person's own file may be any cluster
        return await Source(path).find()


def client(credentials: Credentials) -> Client:
    """A client for one command."""
    return Client(credentials, user_agent=agent("join"))


def tell(sentence: str) -> None:
    """Say what happens."""
    print(sentence, file=sys.stderr)
