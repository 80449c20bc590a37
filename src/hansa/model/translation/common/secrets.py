"""ConfigMaps and Secrets that pods read: copies of their data."""

from typing import Final

from hansa.kube.objects import Object
from hansa.model import mode
from hansa.model.pair import Link

_TOKEN: Final = "kubernetes.io/service-account-token"  # noqa: S105 - a type
_OF_ACCOUNT: Final = "kubernetes.io/service-account."


def secret(obj: Object, _link: Link) -> Object:
    """A copy; a service account token becomes type Opaque: the lower cluster would overwrite or delete it."""
    if obj.get("type") != _TOKEN:
        return obj
    annotations = {k: v for k, v in obj.annotations.items() if not k.startswith(_OF_ACCOUNT)}
    return obj.with_metadata(annotations=annotations).with_fields(type="Opaque")


config_map_patches: Final = mode.patches_of("data", "binaryData", "immutable")
secret_patches: Final = mode.patches_of("data", "immutable")
