"""Restrictions on the nodes that a pod may ask for: none of the control plane, and in nodeName only those it sees.

Node affinity and node selectors may name others: the scheduler applies taints and capacity to them, and a tenant sees a
node only while its pods run there, so that a pod which is pinned to one could not come back.
"""

from collections.abc import Iterator
from typing import Final

from hansa.kube import resources
from hansa.kube.objects import NamespacedName
from hansa.model.pair import Link
from hansa.model.translation.tenant.pod.restrictions.pod_spec import PodSpec, Violation
from hansa.model.translation.tenant.tenant_settings import Allowance

_ROLE_DOMAIN: Final = "node-role.kubernetes.io/"
_ROLES: Final = tuple(_ROLE_DOMAIN + role for role in ("control-plane", "master", "etcd"))
_ADDONS: Final = "CriticalAddonsOnly"
_NEGATIVE_OPERATORS: Final = ("NotIn", "DoesNotExist")


def violations(spec: PodSpec) -> Iterator[Violation]:
    """Fields by which a pod would run on a node of the control plane."""
    for role in spec.node_selector or ():
        if role in _ROLES:
            yield Violation(f"spec.nodeSelector: {role}", Allowance.CONTROL_PLANE_NODES)
    for one in spec.required_expressions if spec.affinity else ():
        if one.key in _ROLES and one.operator not in _NEGATIVE_OPERATORS:
            yield Violation(f"spec.affinity.nodeAffinity: {one.key}", Allowance.CONTROL_PLANE_NODES)
    for index, toleration in enumerate(spec.tolerations or ()):
        # Of any value, operator and effect: the taints of a control plane may have any.
        if toleration.key.startswith(_ROLE_DOMAIN) or toleration.key in ("", _ADDONS):
            what = f"tolerates {toleration.key or 'all taints'}"
            yield Violation(f"spec.tolerations[{index}]: {what}", Allowance.CONTROL_PLANE_NODES)


def unknown(name: str, link: Link) -> Iterator[str]:
    """Refuse a node that the tenant does not see."""
    if link.lookups.upper(resources.NODES, NamespacedName("", name)) is None:
        yield (
            f"spec.nodeName: {name} is not allowed: Node {name} not found; remove spec.nodeName, or name a node on"
            " which pods of this tenant run (kubectl get nodes)"
        )
