"""A tenant's PodDisruptionBudgets in the super cluster, where nodes are drained.

A copy has the number of pods that the tenant's controllers want healthy, as `minAvailable`: owners of pods, from which
the super cluster would compute it, are not there. It never exceeds all pods but one, and pods that are not ready may
always be evicted, so that a budget delays a drain and does not end it.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model import mode
from hansa.model.lookups import Reads
from hansa.model.pair import Key, Link
from hansa.model.references import Reference

ALWAYS_ALLOW: Final = "AlwaysAllow"


class _Status(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    desired_healthy: int = 0
    expected_pods: int = 0


def budget(obj: Object, link: Link) -> Object:
    """A budget that leaves one of the pods that the super cluster counts."""
    copy = link.lookups.lower(resources.POD_DISRUPTION_BUDGETS, NamespacedName(obj.namespace, obj.name))
    pods = 0 if copy is None else copy.decode("status", _Status).expected_pods
    wanted = obj.decode("status", _Status).desired_healthy
    spec = {"minAvailable": max(0, min(wanted, pods - 1)), "unhealthyPodEvictionPolicy": ALWAYS_ALLOW}
    selector = obj.spec.get("selector")
    return obj.with_fields(spec=spec if selector is None else spec | {"selector": selector})


def budgets_of_namespace(key: Key) -> Iterator[Reference]:
    """A copy follows the statuses of both sides: it is computed again when a budget of the namespace changes."""
    yield Reference(resources.POD_DISRUPTION_BUDGETS, key.namespace, "")


def _itself(obj: Object) -> Iterator[Reference]:
    yield Reference(resources.POD_DISRUPTION_BUDGETS, obj.namespace, obj.name)


READS: Final = Reads(frozenset({resources.POD_DISRUPTION_BUDGETS}), _itself)
budget_patches: Final = mode.patches_of("spec")
