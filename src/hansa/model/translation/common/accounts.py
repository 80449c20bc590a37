"""Service accounts, and what Roles grant them in their namespace."""

from typing import Final

from hansa.kube.objects import Object
from hansa.model import mode
from hansa.model.pair import Link


def service_account(obj: Object, _link: Link) -> Object:
    """A bare one: pods bring their pull secrets along, and tokens of the lower cluster are for nobody."""
    return obj.with_fields(secrets=None, imagePullSecrets=None, automountServiceAccountToken=False)


def role_binding(obj: Object, _link: Link) -> Object:
    """For service accounts of its namespace only: users and groups of that name are other people below."""
    subjects = [one for one in obj.get("subjects") or () if _is_local(one, obj.namespace)]
    return obj.with_fields(subjects=subjects or None)


role_patches: Final = mode.patches_of("rules")
role_binding_patches: Final = mode.patches_of("subjects")


def _is_local(subject: dict[str, str], namespace: str) -> bool:
    return subject.get("kind") == "ServiceAccount" and subject.get("namespace", namespace) == namespace
