"""A tenant's Secrets below, where tokens of its service accounts are plain Secrets with the words of the reference."""

from typing import Final

from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.pair import Link
from hansa.model.translation import configuration

_TYPE: Final = "type"


def secret(obj: Object, link: Link) -> Object:
    """As above, but a token of a service account becomes a plain Secret that names its original."""
    plain = configuration.secret(obj, link)
    if plain.raw(_TYPE) == obj.raw(_TYPE):
        return plain
    return plain.with_metadata(
        labels={**plain.labels, keys.TOKEN_UID: obj.uid},
        annotations={**plain.annotations, keys.TOKEN_NAME: obj.name},
    )
