"""Names that tenants have in the super cluster. Derived, never parsed: the way back is told by annotations alone."""

import hashlib
from typing import Final

LONGEST: Final = 63  # characters of a namespace's name, and of a label's value
_LONGEST_NODE: Final = 253  # characters of a node's name
_UID_DIGITS: Final = 6
_CUT_DIGITS: Final = 5


def root_namespace(namespace: str, name: str, *, uid: str) -> str:
    """The namespace of a VirtualCluster's control plane, which is also its key, unless its status says another."""
    return shortened(f"{namespace}-{_digest(uid, _UID_DIGITS)}-{name}")


def super_namespace(key: str, namespace: str) -> str:
    """The super cluster's namespace for a namespace of the tenant with this key."""
    return shortened(f"{key}-{namespace}")


def pool_node(super_cluster: str, node: str) -> str:
    """A tenant's node for one of a super cluster of a pool: two of these may have nodes of one name.

    An id has no dots, so that the part before the first one tells whose node it is.
    """
    name = f"{super_cluster}.{node}"
    if len(name) <= _LONGEST_NODE:
        return name
    return f"{name[: _LONGEST_NODE - _UID_DIGITS - 1]}-{_digest(name, _UID_DIGITS)}"


def shortened(name: str) -> str:
    """A name that is not too long; the end of one that was is a digest of the whole, so that two stay two."""
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST - _CUT_DIGITS - 1]}-{_digest(name, _CUT_DIGITS)}"


def _digest(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
