"""Steps on a pod's labels."""

import msgspec

from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.pair import Link
from hansa.model.translation.common import link_settings


def move_ignored_labels(pod: Object, link: Link) -> Object:
    """Move ignored labels, which would affect controllers of the lower cluster, to an annotation of the lower pod."""
    ignored = {key: value for key, value in pod.labels.items() if key in link_settings.of(link).ignored_labels}
    if not ignored:
        return pod
    return pod.with_metadata(
        labels={key: value for key, value in pod.labels.items() if key not in ignored},
        annotations={**pod.annotations, keys.TRIPPED_LABELS: msgspec.json.encode(ignored, order="sorted").decode()},
    )


def mark_virtual(pod: Object, _link: Link) -> Object:
    """Add tensile-kube's label of lower pods."""
    return pod.with_metadata(labels={**pod.labels, keys.VIRTUAL_POD: "true"})
