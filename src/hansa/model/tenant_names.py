"""Names of tenants' objects in the super cluster. They are never parsed: annotations name the tenant's object."""

import hashlib
from typing import Final

LONGEST: Final = 63  # characters of a namespace's name, and of a label's value
_LONGEST_NODE: Final = 253  # characters of a node's name
_UID_DIGITS: Final = 6
_CUT_DIGITS: Final = 5


def root_namespace(namespace: str, name: str, *, uid: str) -> str:
    """The namespace of a VirtualCluster's control plane, which is also its key, unless its status names another."""
    return shortened(f"{namespace}-{_digest(uid, _UID_DIGITS)}-{name}")


def super_namespace(key: str, namespace: str) -> str:
    """The super cluster's namespace for a namespace of the tenant with this key."""
    return shortened(f"{key}-{namespace}")


def pool_node(super_cluster: str, node: str) -> str:
    """The name of a tenant's node in a pool, prefixed with the super cluster's id: node names may repeat there.

    Ids have no dots, so the prefix ends at the first dot.
    """
    name = f"{super_cluster}.{node}"
    if len(name) <= _LONGEST_NODE:
        return name
    return f"{name[: _LONGEST_NODE - _UID_DIGITS - 1]}-{_digest(name, _UID_DIGITS)}"


def shortened(name: str) -> str:
    """The name, or, if it is too long, a prefix of it with a digest of the whole name, which keeps names distinct."""
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST - _CUT_DIGITS - 1]}-{_digest(name, _CUT_DIGITS)}"


def _digest(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
