"""A tenant's Secrets and ServiceAccounts in the super cluster. Service account tokens become opaque Secrets there."""

from typing import Final

from hansa.kube.objects import Object
from hansa.model import keys, lifecycle, references
from hansa.model.pair import Link
from hansa.model.translation.common import secrets

_TYPE: Final = "type"
# Every namespace of the super cluster already has a ServiceAccount "default": an existing one is used, not a conflict.
SERVICE_ACCOUNT_LIFECYCLE: Final = lifecycle.Lifecycle(shares_name=lambda name: name == references.DEFAULT_ACCOUNT)


def secret(obj: Object, link: Link) -> Object:
    """A copy; a service account token becomes an opaque Secret with VirtualCluster's labels for its origin."""
    plain = secrets.secret(obj, link)
    if plain.raw(_TYPE) == obj.raw(_TYPE):
        return plain
    return plain.with_metadata(
        labels={**plain.labels, keys.TOKEN_UID: obj.uid},
        annotations={**plain.annotations, keys.TOKEN_NAME: obj.name},
    )
