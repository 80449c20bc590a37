"""Why a tenant's pod is or is not in each super cluster of a pool, and the slices and quota that would help. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from hansa.kube.objects import NamespacedName, Object
from hansa.model import capacity, requests
from hansa.model.requests import Amounts
from hansa.scheduling import explaining
from hansa.scheduling.explaining import Answer, Candidate
from hansa.scheduling.forecasting.pool import PoolWorld
from hansa.scheduling.pod_request import PodRequest
from hansa.scheduling.slicing import planning, pod_choice, slices
from hansa.scheduling.slicing.pod_choice import Used
from hansa.scheduling.slicing.pool import Pool
from hansa.scheduling.verdict import Closed, Reason, Refusal

_MOST_TRIED: Final = 64  # larger quotas; spread over many clusters, a cluster gets one slice of many


@dataclass(frozen=True, slots=True)
class MoreSlices:
    """A namespace with more slices in a cluster, which has room for them."""

    cluster: str
    namespace: str
    slices: int
    had: int

    def parts(self) -> tuple[str, ...]:
        """As the end of a sentence."""
        return (f"namespace {self.namespace} had {self.slices} slice(s) there instead of {self.had}",)

    def as_json(self) -> dict[str, Any]:
        """For `-o json`."""
        return {"cluster": self.cluster, "namespace": self.namespace, "slices": self.slices}


@dataclass(frozen=True, slots=True)
class LargerQuota:
    """A quota with which the scheduler would place enough slices in one cluster."""

    namespace: str
    quota: Mapping[str, int]
    cluster: str

    def parts(self) -> tuple[str, ...]:
        """As the end of a sentence."""
        hard = ",".join(f"{name}={text}" for name, text in capacity.resource_list(self.quota).items())
        return (f"the ResourceQuota of namespace {self.namespace} was {hard}: then it fits in {self.cluster}",)

    def as_json(self) -> dict[str, Any]:
        """For `-o json`."""
        return {
            "namespace": self.namespace,
            "quota": capacity.resource_list(self.quota),
            "cluster": self.cluster,
        }


def answers(world: PoolWorld, key: NamespacedName, pod: Object) -> list[Answer]:
    """What each super cluster says, as if the pod was nowhere."""
    asked = _Asked(
        world, key, world.request(key, pod), world.pool(), world.assignments(besides=key).used(key.namespace)
    )
    views = world.views(key, asked.request)
    found = []
    for name, one in sorted(world.supers.items()):
        candidate = Candidate("", asked.request, views.get(name, one.view), unknown=one.snapshot.unknown)
        found.append(_with_slices(explaining.answer(candidate), asked))
    return found


def larger_quota(world: PoolWorld, key: NamespacedName, pod: Object) -> LargerQuota | None:
    """The smallest quota with which the pod fits somewhere; None if it fits now, or with none that was tried."""
    space = world.spaces[key.namespace]
    if world.choose(key, pod).best is not None:
        return None
    pool, assignments = world.pool(), world.assignments(besides=key)
    request = world.slice_request(space, assignments)
    wanted, size = slices.count(request.quota, request.slice), request.slice
    common = [name for name in size if name in request.quota] or list(size)
    for more in range(1, _MOST_TRIED + 1):
        quota = {**request.quota, **{name: size[name] * (wanted + more) for name in common}}
        found = planning.plan(replace(request, quota=quota), pool)
        holdings = {**world.holdings, key.namespace: found.holding}
        best = replace(world, holdings=holdings).choose(key, pod).best
        if best is not None:
            return LargerQuota(space.namespace.name, {name: quota[name] for name in common}, best.cluster)
        if found.missing is not None:
            return None
    return None


@dataclass(frozen=True, slots=True)
class _Asked:
    world: PoolWorld
    key: NamespacedName
    request: PodRequest
    pool: Pool
    used: Used


def _with_slices(inner: Answer, asked: _Asked) -> Answer:
    """The answer of a cluster's nodes, with that of the namespace's slices there."""
    cluster, holding = inner.cluster, asked.world.holding(asked.key.namespace)
    number, taken = holding.placements.get(cluster, 0), asked.used.get(cluster, {})
    reasons: tuple[Reason, ...] = tuple(pod_choice.exhausted(asked.request, taken, holding, number))
    if not number:
        reasons = (Closed("the namespace has no slices there"),)
    is_unsliced = not number and asked.world.is_placed(asked.key.namespace, cluster)
    if inner.unknown or not reasons or is_unsliced:
        return inner
    refusal = Refusal(cluster, (*reasons, *(inner.refusal.reasons if inner.refusal else ())))
    more = _more_slices(cluster, asked, number, taken) if inner.refusal is None or inner.remedies else None
    remedies = () if more is None else (more, *inner.remedies)
    return replace(inner, fits_on="", refusal=refusal, remedies=remedies)


def _more_slices(cluster: str, asked: _Asked, number: int, taken: Amounts) -> MoreSlices | None:
    """The slices that the pod needs in a cluster; None if that has no room for them."""
    world, space = asked.world, asked.world.spaces[asked.key.namespace]
    holding = world.holding(space.ref)
    size = holding.slice if holding.placements else world.slice_request(space, world.assignments()).slice
    total = dict(taken)
    requests.add(total, asked.request.amounts)
    wanted = slices.needed(total, size)
    if wanted - number > asked.pool.room(cluster, size):
        return None
    return MoreSlices(cluster, space.namespace.name, wanted, number)
