"""The message about a kind that the credentials for a lower cluster may not read.

Used where an object is of such a kind or needs one. When the right is granted, the cache of the kind is listed, which
requeues the keys that wait for its cluster.
"""

from hansa.kube.objects import NamespacedName
from hansa.model.pair import Key

VERBS = "get, list, watch, create, patch and delete"


def message(needed: Key, cluster: str) -> str:
    """What cannot be synced, where, and which right is missing."""
    what = f"{needed.resource.kind} {NamespacedName(needed.namespace, needed.name)}"
    reason = f"the credentials for {cluster} may not read {needed.resource} (403)"
    return f"{what} cannot be synced to {cluster}: {reason}; grant them {VERBS} of {needed.resource} there"
