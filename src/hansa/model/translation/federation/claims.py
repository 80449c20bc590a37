"""Claims of a source cluster in targets, by setting: each target provisions a volume of its own for its copy."""

from hansa.kube.objects import Object
from hansa.model.pair import Link
from hansa.model.translation.common import storage


def claim(obj: Object, _link: Link) -> Object:
    """A copy that is not tied to the volume or to the data source of the claim in the source cluster."""
    tied = ("volumeName", "dataSource", "dataSourceRef")
    spec = {name: value for name, value in obj.spec.items() if name not in tied}
    return storage.without_binding_annotations(obj).with_fields(spec=spec)
