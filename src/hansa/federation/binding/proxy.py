"""What the binder reads of a proxy pod: its requests, decoded once, its candidate, and the failure of that.

Virtual nodes have to match the proxy pod's own constraints, nodes of a target those of the pod as its user wrote it.
"""

from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from hansa.kube.language import affinity
from hansa.kube.objects import Object
from hansa.model import keys, requests
from hansa.model.translation.federation import source_pod
from hansa.scheduling import pod_affinity_terms, pod_request
from hansa.scheduling.pod_request import PodRequest

_SCHEDULED: Final = "PodScheduled"


@dataclass(frozen=True, slots=True)
class ProxyRequest:
    """What one proxy pod asks for. `proxy` is for virtual nodes, `delegate` for the nodes of a target."""

    uid: str
    proxy: PodRequest
    delegate: PodRequest
    # False: it is placed without a look at free resources, as those of its scheduler in the target aren't known.
    is_reserved: bool = True

    @property
    def kind(self) -> tuple[Any, ...]:
        """Equal for pods that fit in the same places, such as those of one Deployment."""
        parts = ((frozenset(one.amounts.items()), one.affinity, one.tolerations) for one in (self.proxy, self.delegate))
        return (self.proxy.namespace, self.is_reserved, *parts)


def is_waiting(pod: Object) -> bool:
    """Whether a pod is a proxy that may be placed: not bound, ended, being deleted or held by a scheduling gate."""
    if pod.is_deleting:
        return False
    spec = pod.decode("spec", _Spec)
    is_open = spec.scheduler_name == keys.PROXY_SCHEDULER and not spec.node_name and not spec.scheduling_gates
    return is_open and keys.SOURCE_POD in pod.annotations and not requests.is_finished(pod)


def is_bound(pod: Object) -> bool:
    """Whether a pod is a proxy that is bound and has not ended."""
    spec = pod.decode("spec", _Spec)
    is_proxy = spec.scheduler_name == keys.PROXY_SCHEDULER and bool(spec.node_name)
    return is_proxy and not pod.is_deleting and not requests.is_finished(pod)


def request_of(pod: Object) -> ProxyRequest:
    """Decode a proxy pod. Raises a HansaError for constraints or a manifest that cannot be read."""
    source = source_pod.of(pod)
    has_own = keys.PROXY_CONSTRAINTS not in pod.annotations and keys.USE_CONSTRAINTS in pod.annotations
    delegate = replace(pod_request.of_pod(source), pod_constraints=pod_affinity_terms.NONE)
    if has_own:  # the pod's constraints select its virtual node, and don't apply in the target
        delegate = replace(delegate, affinity=affinity.NodeAffinity(), tolerations=())
    is_reserved = keys.NO_RESERVATION not in pod.annotations
    return ProxyRequest(pod.uid, pod_request.of_pod(pod), delegate, is_reserved)


def failure(pod: Object, node: str) -> str:
    """Why the target of this virtual node did not take the delegate; empty if that is not known (yet)."""
    for one in pod.decode("status", _Status).conditions or ():
        message = one.message or ""
        if one.type == _SCHEDULED and one.status == "False" and message.startswith(f"{node}: "):
            return message.removeprefix(f"{node}: ")
    return ""


class _Gate(msgspec.Struct, frozen=True):
    name: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""
    scheduler_name: str = ""
    scheduling_gates: tuple[_Gate, ...] | None = None


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""
    message: str | None = None


class _Status(msgspec.Struct, frozen=True):
    conditions: tuple[_Condition, ...] | None = None
