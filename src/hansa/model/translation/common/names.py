"""Names of lower objects that differ from their upper ones. They are derived, so no mapping has to be stored."""

import hashlib

from hansa.kube import resources
from hansa.kube.resource import Resource
from hansa.model.references import Token

ROOT_CA = "kube-root-ca.crt"  # the ConfigMap that every cluster publishes in each of its namespaces
_TOKEN = "hansa-token-"  # noqa: S105 - begins the names of Secrets
TOKEN_KEY = "token"  # noqa: S105 - the key in the Secret, not a token


def lower_name(resource: Resource, name: str, *, upper_id: str) -> str:
    """The lower name: the same, except for objects that every cluster creates under that name."""
    if resource == resources.CONFIG_MAPS and name == ROOT_CA:
        return f"{ROOT_CA}-{_digest(upper_id)}"
    return name


def token_secret(token: Token, *, upper_id: str) -> str:
    """The Secret that holds a token of the upper API server, shared by all pods that mount the same token."""
    return f"{_TOKEN}{_digest(upper_id, *map(str, token))}"


def is_token_secret(name: str) -> bool:
    """Whether a Secret has the name of one with a token."""
    return name.startswith(_TOKEN)


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
