"""Fields of a pod that speak of the cluster that it is in: its node, its scheduler."""

from typing import Final

from hansa.kube.objects import Object
from hansa.model.pair import Link
from hansa.model.translation.pod.spec import Spec
from hansa.model.translation.tenant import nodes, settings

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def pin_to_node(spec: Spec, _pod: Object, link: Link) -> Spec:
    """A pod that names its node is scheduled to that node, so that what the super cluster counts stays right."""
    node = spec.get("nodeName")
    if not node:
        return spec
    here = [{"key": "metadata.name", "operator": "In", "values": [nodes.name_below(node, link)]}]
    affinity = spec.get("affinity") or {}
    wanted = affinity.get("nodeAffinity") or {}
    terms = (wanted.get(_REQUIRED) or {}).get("nodeSelectorTerms") or [{}]
    pinned = {"nodeSelectorTerms": [term | {"matchFields": here} for term in terms]}
    return spec | {"affinity": affinity | {"nodeAffinity": wanted | {_REQUIRED: pinned}}}


def choose_scheduler(spec: Spec, _pod: Object, link: Link) -> Spec:
    """A scheduler of the super cluster that the tenant may name, or its default one: a tenant's own would not come."""
    if spec.get("schedulerName") in settings.of(link).schedulers:
        return spec
    return {name: value for name, value in spec.items() if name != "schedulerName"}
