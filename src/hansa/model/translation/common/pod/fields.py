"""Steps on fields that the upper cluster set by default or scheduling, and that the lower cluster sets itself."""

from typing import Final

from hansa.kube.objects import Object
from hansa.model.pair import Link
from hansa.model.translation.common import link_settings
from hansa.model.translation.common.pod.spec import Spec

# The lower scheduler chooses the node. Upper admission set priority and overhead from classes of its own cluster: lower
# admission refuses values that its classes don't have.
_UPPER_FIELDS: Final = frozenset({"nodeName", "priority", "preemptionPolicy", "overhead"})


def drop_node_fields(spec: Spec, _pod: Object, _link: Link) -> Spec:
    """Drop the fields that the upper cluster's scheduler and admission set."""
    return {name: value for name, value in spec.items() if name not in _UPPER_FIELDS}


def drop_readiness_gates(spec: Spec, _pod: Object, _link: Link) -> Spec:
    """Drop readiness gates: controllers of the upper cluster set their conditions, on the upper pod.

    `status` includes them when it syncs the condition Ready up.
    """
    return {name: value for name, value in spec.items() if name != "readinessGates"}


def choose_scheduler(spec: Spec, _pod: Object, link: Link) -> Spec:
    """Set the lower cluster's scheduler: the upper pod's schedulerName is one of the upper cluster."""
    scheduler = link_settings.of(link).scheduler
    others = {name: value for name, value in spec.items() if name != "schedulerName"}
    return others | {"schedulerName": scheduler} if scheduler else others


def choose_priority_class(spec: Spec, _pod: Object, link: Link) -> Spec:
    """Drop the priority class, unless the lower cluster has it by its settings: admission refuses an unknown class."""
    if link_settings.of(link).keeps_priority_class:
        return spec
    return {name: value for name, value in spec.items() if name != "priorityClassName"}
