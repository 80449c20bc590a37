"""Names of lower objects that are not those of their upper ones. Derived, so that whoever computes one finds it."""

import hashlib

from hansa.kube import resources
from hansa.kube.resource import Resource
from hansa.model.references import Token

ROOT_CA = "kube-root-ca.crt"  # the ConfigMap that every cluster puts into every namespace, each its own
TOKEN_KEY = "token"  # noqa: S105 - the key in the Secret, not a token


def lower_name(resource: Resource, name: str, *, upper_id: str) -> str:
    """The name below: the same, but for what each cluster has of its own under that name."""
    if resource == resources.CONFIG_MAPS and name == ROOT_CA:
        return f"{ROOT_CA}-{_digest(upper_id)}"
    return name


def token_secret(token: Token, *, upper_id: str) -> str:
    """The Secret that holds a token of the upper API server, one for all pods that ask for the same."""
    return f"hansa-token-{_digest(upper_id, *map(str, token))}"


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
