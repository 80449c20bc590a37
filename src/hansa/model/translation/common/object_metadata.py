"""Steps on the metadata of any kind: what is left behind, and the words that tensile-kube's users know copies by."""

from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.pair import Link

# They tell of the upper object's own life: a patch down for each change would be for nothing.
_OF_THE_UPPER = frozenset({keys.LOWER_UID, "kubectl.kubernetes.io/last-applied-configuration"})


def leave_notes_behind(obj: Object, _link: Link) -> Object:
    """Drop annotations that speak of the upper object only."""
    if _OF_THE_UPPER.isdisjoint(obj.annotations):
        return obj
    return obj.with_metadata(annotations={k: v for k, v in obj.annotations.items() if k not in _OF_THE_UPPER})


def mark_global(obj: Object, _link: Link) -> Object:
    """Mark a copy of what pods refer to."""
    return obj.with_metadata(annotations={**obj.annotations, keys.GLOBAL: "true"})
