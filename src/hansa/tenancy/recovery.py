"""Makes a tenant's objects again from their copies in super clusters, after the tenant's etcd lost its data.

`kubectl vc recover` runs it. Each copy is adopted right after its object exists: the stamp names the new one.
Namespaces are adopted last, since vc-syncer serves the tenant again when they are. So an interrupted run is continued
by the next one. Building an object from its copy is left to `model.translation.tenant.recovered`.
"""

import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource
from hansa.model import keys, stamp
from hansa.model.translation.tenant import recovered
from hansa.tenancy.syncing import data_loss

LATER: Final = (errors.Unreachable, errors.Throttled)  # the run ends; other errors belong to their object
PODS: Final = "pods"


@dataclass
class Result:
    """The number of objects by outcome, and what failed."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)  # by outcome and kind
    failed: list[str] = field(default_factory=list)
    pods: list[str] = field(default_factory=list)  # copies of lost pods, which still run

    @contextlib.contextmanager
    def attempt(self, name: str) -> Iterator[None]:
        """Record an error of this object, so that the run goes on with others."""
        try:
            yield
        except LATER:
            raise
        except errors.ApiError as error:
            self.failed.append(f"{name}: {error}")

    def lines(self) -> Iterable[str]:
        """A line for each outcome."""
        for outcome in dict.fromkeys(outcome for outcome, _ in self.counts):
            kinds = (f"{number} {kind}" for (one, kind), number in sorted(self.counts.items()) if one == outcome)
            yield f"{outcome}: {', '.join(kinds)}"


@dataclass(frozen=True, slots=True)
class Recovery:
    """The recovery of one tenant, with this id; `report` gets a line for each change."""

    tenant: Client
    tenant_id: str
    vc_uid: str
    report: Callable[[str], None]
    is_dry_run: bool = False
    deletes_pods: bool = False

    async def run(self, supers: Iterable[Client]) -> Result:
        """Recover from all super clusters; namespaces are adopted when the objects of all of them are."""
        result, adoptions = Result(), []
        for super_cluster in supers:
            namespaces = [one async for one in self._namespaces(super_cluster)]
            for copy in namespaces:
                if (upper := await self._ensure(copy, resources.NAMESPACES, result)) is not None:
                    await self._recover_namespace(super_cluster, copy.name, result)
                    adoptions.append((super_cluster, copy, upper))
        # vc-syncer reads the last ones to see whether the tenant is whole.
        for super_cluster, copy, upper in sorted(adoptions, key=lambda one: one[2].name in data_loss.NAMESPACES):
            await self._adopt(super_cluster, copy, resources.NAMESPACES, upper, result)
        return result

    async def _namespaces(self, super_cluster: Client) -> AsyncIterator[Object]:
        async for page in super_cluster.pages(resources.NAMESPACES, labels=stamp.selector()):
            for one in page.items:
                if one.annotations.get(keys.VC_UID) == self.vc_uid and not one.is_deleting:
                    yield one

    async def _recover_namespace(self, super_cluster: Client, name: str, result: Result) -> None:
        for resource in recovered.FIELDS:
            if resource.namespaced:
                for copy in await _copies(super_cluster, resource, name):
                    if (upper := await self._ensure(copy, resource, result)) is not None:
                        await self._adopt(super_cluster, copy, resource, upper, result)
                    elif recovered.upper_of(copy, resource) is None:
                        await self._hand_over(super_cluster, copy, resource, result)
        for resource in recovered.OTHERS:
            for copy in await _copies(super_cluster, resource, name):
                if recovered.is_computed(copy) or self.deletes_pods:
                    await self._hand_over(super_cluster, copy, resource, result)
        for pod in await _copies(super_cluster, resources.PODS, name):
            await self._end_pod(super_cluster, pod, result)

    async def _ensure(self, copy: Object, resource: Resource, result: Result) -> Object | None:
        """The tenant's object of a copy, created if it is missing; None if there is none to create, or it failed."""
        wanted = recovered.upper_of(copy, resource)
        if wanted is None:
            return None
        name = f"{resource.kind} {wanted.key}"
        with result.attempt(name):
            try:
                return await self.tenant.get(resource, wanted.name, namespace=wanted.namespace)
            except errors.NotFound:
                made = wanted if self.is_dry_run else await self.tenant.create(resource, wanted)
            self._count(result, "created", resource.kind, name)
            return made
        return None

    async def _adopt(
        self, super_cluster: Client, copy: Object, resource: Resource, upper: Object, result: Result
    ) -> None:
        if patch := recovered.adoption(copy, upper, self.tenant_id):
            with result.attempt(f"copy {copy.key} of {resource.kind} {upper.key}"):
                await self._patch(super_cluster, copy, resource, patch)
                result.counts["adopted", resource.kind] += 1

    async def _hand_over(self, super_cluster: Client, copy: Object, resource: Resource, result: Result) -> None:
        """Leave a copy to vc-syncer, which updates it, or deletes it if the tenant has no such object."""
        if patch := recovered.handover(copy, self.tenant_id):
            with result.attempt(f"copy {copy.key} of {resource.kind}"):
                await self._patch(super_cluster, copy, resource, patch)

    async def _patch(self, super_cluster: Client, copy: Object, resource: Resource, patch: dict[str, object]) -> None:
        if not self.is_dry_run:
            await super_cluster.patch(resource, copy.name, patch, namespace=copy.namespace)

    async def _end_pod(self, super_cluster: Client, pod: Object, result: Result) -> None:
        """A copy whose pod is lost: its owner is lost as well, and creates others when it is applied again."""
        origin = stamp.of(pod)
        if origin is None or origin.upper == self.tenant_id:
            return
        name = f"{origin.namespace}/{origin.name}"
        if not self.deletes_pods:
            result.pods.append(name)
            return
        with result.attempt(f"copy of Pod {name}"), contextlib.suppress(errors.NotFound):
            if not self.is_dry_run:
                await super_cluster.delete(resources.PODS, pod.name, namespace=pod.namespace, uid=pod.uid)
            self._count(result, "deleted", "Pod", f"copy of Pod {name}")

    def _count(self, result: Result, outcome: str, kind: str, name: str) -> None:
        result.counts[outcome, kind] += 1
        self.report(f"{name} {outcome}{' (dry run)' if self.is_dry_run else ''}")


async def _copies(super_cluster: Client, resource: Resource, namespace: str) -> list[Object]:
    pages = super_cluster.pages(resource, namespace=namespace, labels=stamp.selector())
    return [one async for page in pages for one in page.items if not one.is_deleting]
