"""Steps on the metadata of any kind: annotations that are not synced, and tensile-kube's annotation of copies."""

from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.pair import Link

# They describe the upper object only. Syncing them would patch the copy for each change, without effect.
_UPPER_ONLY = frozenset({keys.LOWER_UID, "kubectl.kubernetes.io/last-applied-configuration"})


def drop_upper_annotations(obj: Object, _link: Link) -> Object:
    """Drop annotations that describe the upper object only."""
    if _UPPER_ONLY.isdisjoint(obj.annotations):
        return obj
    return obj.with_metadata(annotations={k: v for k, v in obj.annotations.items() if k not in _UPPER_ONLY})


def mark_global(obj: Object, _link: Link) -> Object:
    """Annotate a copy of an object that pods refer to."""
    return obj.with_metadata(annotations={**obj.annotations, keys.GLOBAL: "true"})
