"""A tenant's PodDisruptionBudgets in the super cluster, where nodes are drained.

A copy has the number of pods that the tenant's controllers want healthy, as `minAvailable`: owners of pods, from which
the super cluster would compute it, are not there. It never exceeds all pods but one, and pods that are not ready may
always be evicted, so that a budget delays a drain and does not end it. A pod that several budgets select could not be
evicted at all, so a label of the pod names one of them.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from hansa.kube import resources
from hansa.kube.language import selectors
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys, mode, tenant_names
from hansa.model.lookups import Reads
from hansa.model.pair import Link
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
    spec = {
        "minAvailable": max(0, min(wanted, pods - 1)),
        "unhealthyPodEvictionPolicy": ALWAYS_ALLOW,
        "selector": {"matchLabels": {keys.BUDGET: tenant_names.shortened(obj.name)}},
    }
    return obj.with_fields(spec=spec)


def label_selected(pod: Object, link: Link) -> Object:
    """Label a copy of a pod that a budget of the tenant selects; the first one by name if there are several."""
    budgets = link.lookups.uppers(resources.POD_DISRUPTION_BUDGETS, pod.namespace)
    name = min((one.name for one in budgets if _selects(one, pod)), default="")
    return pod.with_metadata(labels={**pod.labels, keys.BUDGET: tenant_names.shortened(name)}) if name else pod


def counts(obj: Object) -> Mapping[str, int]:
    """The part of the status, of both sides, from which a copy is computed."""
    status = obj.decode("status", _Status)
    return {"desiredHealthy": status.desired_healthy, "expectedPods": status.expected_pods}


class _Spec(msgspec.Struct, frozen=True, gc=False):
    selector: dict[str, Any] | None = None


def _selects(budget: Object, pod: Object) -> bool:
    return selectors.of_object(budget.decode("spec", _Spec).selector).matches(pod.labels)


def _itself(obj: Object) -> Iterator[Reference]:
    yield Reference(resources.POD_DISRUPTION_BUDGETS, obj.namespace, obj.name)


READS: Final = Reads(frozenset({resources.POD_DISRUPTION_BUDGETS}), _itself)
budget_patches: Final = mode.patches_of("spec")
