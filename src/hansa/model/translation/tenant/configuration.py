"""A tenant's Secrets and service accounts below; tokens are plain Secrets there, with the words of the reference."""

from typing import Final

from hansa.kube.objects import Object
from hansa.model import keys, lifecycle, references
from hansa.model.pair import Link
from hansa.model.translation import configuration

_TYPE: Final = "type"
# Every namespace of the super cluster has a default account of its own, so there only this name can be shared.
ACCOUNT: Final = lifecycle.Lifecycle(shares_name=lambda name: name == references.DEFAULT_ACCOUNT)


def secret(obj: Object, link: Link) -> Object:
    """As above, but a token of a service account becomes a plain Secret that names its original."""
    plain = configuration.secret(obj, link)
    if plain.raw(_TYPE) == obj.raw(_TYPE):
        return plain
    return plain.with_metadata(
        labels={**plain.labels, keys.TOKEN_UID: obj.uid},
        annotations={**plain.annotations, keys.TOKEN_NAME: obj.name},
    )
