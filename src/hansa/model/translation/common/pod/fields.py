"""Steps on fields that the upper cluster filled in for its own use and that the lower cluster fills in anew."""

from typing import Final

from hansa.kube.objects import Object
from hansa.model.pair import Link
from hansa.model.translation.common import link_settings
from hansa.model.translation.common.pod.spec import Spec

# The node is the lower scheduler's choice. Priority and overhead are numbers that admission took from a class above:
# admission below refuses a number that its own class does not have.
_SET_ABOVE: Final = frozenset({"nodeName", "priority", "preemptionPolicy", "overhead"})


def drop_node_fields(spec: Spec, _pod: Object, _link: Link) -> Spec:
    """Drop what the upper cluster's scheduler and admission decided."""
    return {name: value for name, value in spec.items() if name not in _SET_ABOVE}


def drop_readiness_gates(spec: Spec, _pod: Object, _link: Link) -> Spec:
    """A gate is opened above, by whoever asked for it, so it cannot hold back the lower pod.

    `status` counts it in on the way up.
    """
    return {name: value for name, value in spec.items() if name != "readinessGates"}


def choose_scheduler(spec: Spec, _pod: Object, link: Link) -> Spec:
    """Let the lower cluster's scheduler place the pod; one of the upper cluster's would not come."""
    scheduler = link_settings.of(link).scheduler
    others = {name: value for name, value in spec.items() if name != "schedulerName"}
    return others | {"schedulerName": scheduler} if scheduler else others


def choose_priority_class(spec: Spec, _pod: Object, link: Link) -> Spec:
    """Drop the priority class, unless the lower cluster is known to have it: a missing one is refused."""
    if link_settings.of(link).keeps_priority_class:
        return spec
    return {name: value for name, value in spec.items() if name != "priorityClassName"}
