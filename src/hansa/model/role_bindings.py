"""What RoleBindings name: to whom they grant, and what."""

from collections.abc import Iterator

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model.references import Reference


def accounts(binding: Object) -> Iterator[Reference]:
    """The service accounts of its own namespace that a RoleBinding is for."""
    for subject in binding.get("subjects") or ():
        if subject.get("kind") == "ServiceAccount" and subject.get("namespace", binding.namespace) == binding.namespace:
            yield Reference(resources.SERVICE_ACCOUNTS, binding.namespace, subject.get("name", ""))


def role(binding: Object) -> Iterator[Reference]:
    """The Role that a RoleBinding grants; a ClusterRole is the lower cluster's own."""
    granted = binding.get("roleRef") or {}
    if granted.get("kind") == "Role":
        yield Reference(resources.ROLES, binding.namespace, granted.get("name", ""))
