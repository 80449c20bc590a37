"""`kubectl vc recover`: brings back objects of a tenant from super clusters, which is left to `tenancy.recovery`."""

import contextlib
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Final

from hansa.cli.kubectl_vc.commands import Commands, report
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.credentials import Credentials
from hansa.kube.credentials.secret import SecretCredentials
from hansa.kube.credentials.source import CredentialSource
from hansa.kube.objects import NamespacedName
from hansa.runtime.errors import HansaError
from hansa.scheduling.pooling import pool_members
from hansa.tenancy.pool import join_manifests
from hansa.tenancy.recovery import Recovery, Result

DESCRIPTION: Final = """\
Creates namespaces, ServiceAccounts, ConfigMaps, Secrets, PersistentVolumeClaims and Services of the tenant again
from their copies in super clusters, after its etcd lost its data. The copies become those of the new objects. Objects
that exist are not changed. It can be repeated, also after an interruption. What is not in super clusters cannot be
recovered: workloads such as Deployments, pods, RBAC, custom resources, and annotations that are not synced.
"""
SHOWN: Final = 5  # names in a line


async def recover(
    commands: Commands, key: NamespacedName, paths: Iterable[Path], *, is_dry_run: bool, deletes_pods: bool
) -> int:
    """Recover a tenant; the exit code."""
    vc, tenant = await commands.tenant(key)
    async with tenant, contextlib.AsyncExitStack() as stack:
        supers = [await stack.enter_async_context(one) async for one in _supers(commands.client, tuple(paths))]
        tenant_id = (await tenant.get(resources.NAMESPACES, "kube-system")).uid
        recovery = Recovery(tenant, tenant_id, vc.uid, report=report, is_dry_run=is_dry_run, deletes_pods=deletes_pods)
        result = await recovery.run(supers or [commands.client])
    _print(result, key)
    return 1 if result.failed else 0


async def _supers(meta: Client, paths: tuple[Path, ...]) -> AsyncIterator[Client]:
    """Clients of the given super clusters, else of the members of the pool."""
    for path in paths:
        yield _client(await CredentialSource(path, flag="--super-kubeconfig").find())
    if paths:
        return
    async for member in pool_members.all_of(meta):
        try:
            secret = await meta.get(resources.SECRETS, member.name, namespace=member.namespace)
        except errors.NotFound:
            raise HansaError(
                f"super cluster {member.name} has no Secret {member.key}: name all super clusters with"
                " --super-kubeconfig"
            ) from None
        yield _client(SecretCredentials(secret, key=join_manifests.SECRET_KEY))


def _client(credentials: Credentials) -> Client:
    return Client(credentials, user_agent="kubectl-vc")


def _print(result: Result, key: NamespacedName) -> None:
    for line in (*result.failed, *result.lines()):
        report(line)
    if not result.counts and not result.failed:
        report(f"VirtualCluster {key} has nothing to recover: each of its copies belongs to an object of the tenant")
    if result.pods:
        names = ", ".join(result.pods[:SHOWN]) + (" …" if len(result.pods) > SHOWN else "")
        report(
            f"{len(result.pods)} pods that the tenant lost still run ({names}): apply their workloads again, then run"
            " this command with --delete-pods"
        )
    if result.failed:
        report(f"{len(result.failed)} objects failed; correct the reason and run the same command again")
