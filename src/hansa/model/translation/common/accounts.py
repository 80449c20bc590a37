"""ServiceAccounts, Roles and RoleBindings in the lower cluster."""

from typing import Final

from hansa.kube.objects import Object
from hansa.model import mode
from hansa.model.pair import Link


def service_account(obj: Object, _link: Link) -> Object:
    """A copy without secrets and pull secrets: pods list their own, and no token of the lower cluster is mounted."""
    return obj.with_fields(secrets=None, imagePullSecrets=None, automountServiceAccountToken=False)


def role_binding(obj: Object, _link: Link) -> Object:
    """A copy with the service accounts of its namespace only: users and groups are others in the lower cluster."""
    subjects = [one for one in obj.get("subjects") or () if _is_local(one, obj.namespace)]
    return obj.with_fields(subjects=subjects or None)


role_patches: Final = mode.patches_of("rules")
role_binding_patches: Final = mode.patches_of("subjects")


def _is_local(subject: dict[str, str], namespace: str) -> bool:
    return subject.get("kind") == "ServiceAccount" and subject.get("namespace", namespace) == namespace
