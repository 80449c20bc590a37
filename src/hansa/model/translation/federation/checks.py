"""Why a proxy pod gets no delegate: annotations that cannot be read. What the target allows is its own admission's."""

from hansa.kube.objects import Object
from hansa.model import keys
from hansa.model.pair import Link
from hansa.model.translation.federation import labels, source_pod


def of_pod(proxy: Object, _link: Link) -> str:
    """Why a proxy pod can't be translated; empty if it can."""
    if problem := source_pod.check(proxy):
        return problem
    pattern = labels.check(proxy.annotations)
    return f"annotation {keys.NO_PREFIX}: {pattern}" if pattern else ""
