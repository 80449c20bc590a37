"""What the super cluster offers to all tenants by a label: storage classes, priority classes, custom resources."""

from typing import Final

from hansa.kube.objects import Object
from hansa.model import keys, mode
from hansa.model.pair import Key, Link
from hansa.model.placement import Facts, Intents, everywhere

PUBLIC: Final = f"{keys.SUPER_PUBLIC}=true"  # the label selector of what is offered
storage_class_patches: Final = mode.patches_of("allowVolumeExpansion", "mountOptions", "allowedTopologies")
priority_class_patches: Final = mode.patches_of("globalDefault", "description")
definition_patches: Final = mode.patches_of("spec")


def is_public(obj: Object) -> bool:
    """Whether the super cluster's administrator offers it."""
    return obj.labels.get(keys.SUPER_PUBLIC) == "true"


def public(upper: Object, key: Key, facts: Facts) -> Intents:
    """What is offered is with every tenant."""
    return everywhere(upper, key, facts) if is_public(upper) else {}


def definition(obj: Object, _link: Link) -> Object:
    """A custom resource's definition. A webhook that converts versions is the super cluster's and cannot be reached."""
    return obj.with_fields(spec=obj.spec | {"conversion": {"strategy": "None"}})
