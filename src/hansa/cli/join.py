"""`hansa join`: joins a cluster to a pool of super clusters."""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import hansa
from hansa.app.program import agent
from hansa.cli import completing, log_flags
from hansa.kube import errors
from hansa.kube.client import Client
from hansa.kube.credentials import Credentials
from hansa.kube.credentials.login import Login
from hansa.kube.credentials.source import CredentialSource
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.runtime.errors import HansaError
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
Creates a service account with least privileges in the cluster. The manifests for the meta cluster and the super
cluster are written to the folder cluster_ID, or applied at once (--apply).
"""
CLUSTERS = Resource(pool_members.GROUP, pool_members.OUR_VERSION, "clusters", kind="Cluster")
PRIVATE = 0o600
SECRET_FILES = ("secret", "kubeconfig")  # parts of the names of files that only the owner may read


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "join",
        help="join a cluster to a pool of super clusters (VirtualCluster)",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    named = parser.add_argument("super", metavar="SUPER", help="context of the kubeconfig, or any name for the cluster")
    completing.with_contexts(named)
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="kubeconfig of the super cluster, with an administrator's rights (default: as kubectl)",
    )
    parser.add_argument(
        "--server", metavar="URL", help="URL by which the meta cluster reaches its API server (default: as here)"
    )
    parser.add_argument("--id", metavar="ID", help="id of the super cluster in placements (default SUPER)")
    parser.add_argument(
        "--output", type=Path, metavar="FOLDER", help="folder to write the manifests to (default cluster_ID)"
    )
    parser.add_argument(
        "--apply",
        action="store_true",
        help="apply the manifests to both clusters instead of writing them (default false)",
    )
    add_meta(parser)
    parser.add_argument(
        "--image",
        default=f"hansa:{hansa.__version__}",
        help="container image of vc-syncer and super-agent (default %(default)s)",
    )
    parser.add_argument(
        "--without-syncer",
        action="store_true",
        help="leave out the Deployment of vc-syncer, for a pool served by one vc-syncer --pool (default false)",
    )
    parser.add_argument(
        "--agent",
        action="store_true",
        help="add a Deployment of super-agent, which deletes tenants' pods if the cluster is cut off (default false)",
    )
    log_flags.add_to(parser)
    parser.set_defaults(run=_run)


def add_meta(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name the meta cluster and the namespace of the Cluster."""
    parser.add_argument(
        "--meta-kubeconfig", type=Path, metavar="FILE", help="kubeconfig of the meta cluster (default: as kubectl)"
    )
    parser.add_argument(
        "--namespace", "-n", default="default", help="namespace of the object of kind Cluster (default %(default)s)"
    )


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    id_ = cluster_id.checked(arguments.id or arguments.super)
    credentials = await super_credentials(arguments.super, arguments.kubeconfig)
    async with client(credentials) as below:
        access = await credentials.access()
        joining = Joining(id_, below, _reached_by(arguments.server, access.login))
        if arguments.apply:
            await _apply(joining, arguments)
        else:
            joined = await joining.prepare(CLUSTERS, None, namespace=arguments.namespace, image=arguments.image)
            files = joined.files(has_syncer=not arguments.without_syncer, has_agent=arguments.agent)
            _write(joined, files, arguments.output or Path(f"cluster_{id_}"))
    return 0


def _reached_by(url: str | None, login: Login) -> Login:
    """The login with the URL by which the meta cluster reaches the server."""
    if url is None:
        return login
    if urlsplit(url).scheme != "https" or not urlsplit(url).hostname:
        raise HansaError(f'--server "{url}" is not an https URL, such as https://192.0.2.1:6443')
    return replace(login, server=url)


async def _apply(joining: Joining, arguments: argparse.Namespace) -> None:
    async with client(await CredentialSource(arguments.meta_kubeconfig, flag="--meta-kubeconfig").find()) as meta:
        clusters = await pool_members.resource(meta)
        joined = await joining.prepare(clusters, meta, namespace=arguments.namespace, image=arguments.image)
        await joining.apply(joined, meta, has_syncer=not arguments.without_syncer, has_agent=arguments.agent)
    report(f"{joining.id} has joined the pool")


def _write(joined: Joined, files: Mapping[str, list[Object]], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    texts = {name: join_manifests.dumped(objects) for name, objects in files.items()}
    for name, text in sorted((texts | {"kubeconfig": joined.kubeconfig}).items()):
        path = folder / name
        path.touch(mode=PRIVATE if any(part in name for part in SECRET_FILES) else 0o644)
        path.write_text(text)
        report(f"{path} written")
    below = " and ".join(str(folder / name) for name in sorted(join_manifests.SUPER_FILES & files.keys()))
    report(
        f"apply {below} to the super cluster, and the other manifests to the meta cluster; {folder / 'kubeconfig'}"
        f" belongs to service account {join_manifests.ACCOUNT}, which was created in the super cluster"
    )


async def super_credentials(name: str, path: Path | None) -> Credentials:
    """An administrator's credentials of the super cluster: the context of that name, or the current one."""
    try:
        return await CredentialSource(path, context=name).find()
    except errors.BadCredentials:
        if path is None:
            raise  # without --kubeconfig, the current context may be any cluster
        return await CredentialSource(path).find()


def client(credentials: Credentials) -> Client:
    """A client for one command."""
    return Client(credentials, user_agent=agent("join"))


def report(line: str) -> None:
    """Print progress to standard error."""
    print(line, file=sys.stderr)
