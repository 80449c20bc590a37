"""Whether service accounts of Hansa have the rights of their roles, and whether given credentials have those of one.

Each right is asked of the API server by an access review, so that aggregated roles and webhooks count, too.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from hansa.app.doctor import finding, rights
from hansa.app.doctor.finding import Finding
from hansa.app.doctor.rights import Right
from hansa.app.installation.rendering import Mode
from hansa.app.status.reading import Reader
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.kube.resource import Resource
from hansa.runtime import tasks

CHECK: Final = "permissions"
INSTALLED: Final = "app.kubernetes.io/name=hansa"  # a label of what the chart and hansa install create
SELF_REVIEWS: Final = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", kind="SelfSubjectAccessReview", namespaced=False
)
CONCURRENT: Final = 32
SHOWN: Final = 5  # missing rights in a message
WHY: Final = "its requests are refused (403), and what it has to do with them is not done"
POOL_REMEDY: Final = 'apply the roles of this version: "hansa join ID --apply", as before'
REMEDY: Final = 'apply the roles of this version: "helm upgrade", or "hansa install" as before'


async def examine(reader: Reader, component: str = "") -> list[Finding]:
    """The findings about all service accounts of Hansa, or about our own credentials as those of a component."""
    if component:
        missing = await _missing(reader.client, rights.of_component(component), None)
        return [_finding(f"these credentials, as {component}", missing, rights.of_component(component), REMEDY)]
    found = await reader.list(resources.SERVICE_ACCOUNTS, labels=INSTALLED)
    accounts = {one.key for one in found.items}
    needed = wanted(accounts)
    if await reader.find(resources.SERVICE_ACCOUNTS, rights.POOL_ACCOUNT.name, namespace=rights.POOL_ACCOUNT.namespace):
        needed |= rights.of_pool()
    known = [await _account(reader.client, account, some) for account, some in sorted(needed.items())]
    return [*known, *(_unknown(one) for one in sorted(accounts - needed.keys()))]


def _unknown(account: NamespacedName) -> Finding:
    what = f"service account {account} belongs to no mode with its default components"
    ask = f'examine it with its own kubeconfig: "hansa doctor --component {account.name}"'
    return finding.unknown(CHECK, what, why=WHY, remedy=ask)


def wanted(accounts: Iterable[NamespacedName]) -> dict[NamespacedName, list[Right]]:
    """The rights of service accounts that exist, by the modes that they belong to."""
    accounts = set(accounts)
    found: dict[NamespacedName, list[Right]] = {}
    for namespace in sorted({one.namespace for one in accounts}):
        modes = [rights.of_mode(mode, namespace) for mode in Mode]
        whole = [mode for mode in modes if mode and mode.keys() <= accounts]
        # The accounts of virtualcluster are not a part of those of pool, and of two modes that fit, both may be there.
        for mode in whole:
            found |= {account: sorted({*found.get(account, ()), *some}) for account, some in mode.items()}
    return found


async def _account(client: Client, account: NamespacedName, needed: list[Right]) -> Finding:
    groups = ["system:authenticated", "system:serviceaccounts", f"system:serviceaccounts:{account.namespace}"]
    user = {"user": f"system:serviceaccount:{account.namespace}:{account.name}", "groups": groups}
    remedy = POOL_REMEDY if account == rights.POOL_ACCOUNT else REMEDY
    try:
        missing = await _missing(client, needed, user)
    except errors.Forbidden as error:
        ask = f'let an administrator run this, or use its kubeconfig with "--component {account.name}"'
        return finding.unknown(CHECK, f"service account {account}: {error}", why=WHY, remedy=ask)
    return _finding(f"service account {account}", missing, needed, remedy)


def _finding(who: str, missing: list[Right], needed: list[Right], remedy: str) -> Finding:
    if not missing:
        return finding.fine(CHECK, f"{who}: all {len(needed)} rights of its roles are there")
    more = f", and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
    named = ", ".join(map(str, missing[:SHOWN]))
    return finding.problem(CHECK, f"{who} may not {named}{more}", why=WHY, remedy=remedy)


async def _missing(client: Client, needed: Iterable[Right], user: Mapping[str, Any] | None) -> list[Right]:
    async def is_missing(right: Right) -> Right | None:
        return None if await _is_allowed(client, right, user) else right

    return [one for one in await tasks.gather(is_missing, needed, at_most=CONCURRENT) if one is not None]


async def _is_allowed(client: Client, right: Right, user: Mapping[str, Any] | None) -> bool:
    resource = SELF_REVIEWS if user is None else resources.SUBJECT_ACCESS_REVIEWS
    review = Object.of(
        {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": {},
            "spec": {"resourceAttributes": right.attributes(), **(user or {})},
        }
    )
    return bool((await client.create(resource, review)).status.get("allowed"))
