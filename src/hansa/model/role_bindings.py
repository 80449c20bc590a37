"""The service accounts and the Role that a RoleBinding refers to."""

from collections.abc import Iterator

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model.references import Reference


def accounts(binding: Object) -> Iterator[Reference]:
    """The service accounts among its subjects that are in its own namespace."""
    for subject in binding.get("subjects") or ():
        if subject.get("kind") == "ServiceAccount" and subject.get("namespace", binding.namespace) == binding.namespace:
            yield Reference(resources.SERVICE_ACCOUNTS, binding.namespace, subject.get("name", ""))


def role(binding: Object) -> Iterator[Reference]:
    """The Role of its roleRef. ClusterRoles are not synced: the lower cluster has its own."""
    granted = binding.get("roleRef") or {}
    if granted.get("kind") == "Role":
        yield Reference(resources.ROLES, binding.namespace, granted.get("name", ""))
