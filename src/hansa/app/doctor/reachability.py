"""Whether the API servers of tenants, super clusters and targets answer to the credentials that Hansa has. Pure."""

from collections.abc import Iterable, Iterator
from typing import Final

from hansa.app.doctor import finding
from hansa.app.doctor.finding import Finding
from hansa.app.doctor.visiting import Role, Visit
from hansa.kube import errors

CHECK: Final = "reachability"
WHY: Final = {
    Role.CLUSTER: "nothing else of this cluster can be examined",
    Role.TENANT: "vc-syncer cannot sync the tenant, and kubectl vc cannot write its kubeconfig",
    Role.SUPER: "no pod is placed there, and those that run there start elsewhere once --lost-after has passed",
    Role.TARGET: "no pod of this source is sent there",
}
REFUSED: Final = {
    Role.CLUSTER: "use a kubeconfig with valid credentials",
    Role.TENANT: "delete Secret admin-kubeconfig in the root namespace, so that vc-manager creates it anew, or correct"
    " the kubeconfig that the VirtualCluster names",
    Role.SUPER: 'create new credentials with "hansa join {name} --apply"',
    Role.TARGET: 'create new credentials with "kubemcsa export" in the target',
}
SILENT: Final = {
    Role.CLUSTER: "check the address in the kubeconfig, and that the API server is running",
    Role.TENANT: 'check the tenant\'s control plane ("hansa status"), and that its address can be reached from here'
    " and from vc-syncer",
    Role.SUPER: "check that the API server is running, and that its address in the Secret can be reached from the meta"
    ' cluster; "hansa join {name} --apply" writes another address',
    Role.TARGET: "check that the API server is running, and that its address in the Secret can be reached from this"
    " cluster",
}


def examine(visits: Iterable[Visit]) -> Iterator[Finding]:
    """The findings about servers other than the cluster itself."""
    for one in visits:
        if one.role is Role.CLUSTER:
            continue
        if one.error is None:
            yield finding.fine(CHECK, f"{one} answers at {one.server}")
        else:
            yield refusal(one, one.error)


def refusal(one: Visit, error: errors.ApiError) -> Finding:
    """Why a server does not answer."""
    remedies = REFUSED if isinstance(error, errors.Denied | errors.NotFound) else SILENT
    remedy = remedies[one.role].format(name=one.name)
    return finding.problem(CHECK, f"{one}: {error}", why=WHY[one.role], remedy=remedy)
