"""Steps on a pod's labels."""

import msgspec

from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.pair import Link
from hansa.model.translation.common import link_settings


def put_labels_aside(pod: Object, link: Link) -> Object:
    """Keep labels that would disturb the lower cluster in an annotation. The upper pod's own never change."""
    tripped = {key: value for key, value in pod.labels.items() if key in link_settings.of(link).ignored_labels}
    if not tripped:
        return pod
    return pod.with_metadata(
        labels={key: value for key, value in pod.labels.items() if key not in tripped},
        annotations={**pod.annotations, keys.TRIPPED_LABELS: msgspec.json.encode(tripped, order="sorted").decode()},
    )


def mark_virtual(pod: Object, _link: Link) -> Object:
    """Mark a pod that another cluster's pod stands for."""
    return pod.with_metadata(labels={**pod.labels, keys.VIRTUAL_POD: "true"})
