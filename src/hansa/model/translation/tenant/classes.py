"""Cluster-scoped objects that the super cluster shares with all tenants: StorageClasses, PriorityClasses and CRDs.

An administrator shares one with the label tenancy.x-k8s.io/super.public=true.
"""

from typing import Final

from hansa.kube.objects import Object
from hansa.model import keys, mode
from hansa.model.pair import Key, Link
from hansa.model.placement import Intents, PlacementContext, everywhere

PUBLIC_SELECTOR: Final = f"{keys.SUPER_PUBLIC}=true"
storage_class_patches: Final = mode.patches_of("allowVolumeExpansion", "mountOptions", "allowedTopologies")
priority_class_patches: Final = mode.patches_of("globalDefault", "description")
definition_patches: Final = mode.patches_of("spec")


def is_public(obj: Object) -> bool:
    """Whether the super cluster shares this object with its tenants."""
    return obj.labels.get(keys.SUPER_PUBLIC) == "true"


def where_public(upper: Object, key: Key, context: PlacementContext) -> Intents:
    """Placement: a public object is copied to every tenant."""
    return everywhere(upper, key, context) if is_public(upper) else {}


def definition_without_conversion(obj: Object, _link: Link) -> Object:
    """A CRD without its conversion webhook, which runs in the super cluster and tenants cannot reach."""
    return obj.with_fields(spec=obj.spec | {"conversion": {"strategy": "None"}})
