"""The tenant operator's loop: every VirtualCluster gets its control plane, keeps it, and takes it along when it goes.

What fails is told in the status and tried again for ever; what runs meanwhile is left as it is.
"""

import asyncio
import contextlib
import logging
import random as randomness
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from hansa.control import controller, queue, store, table
from hansa.control.audit import Audit
from hansa.control.events import Kind, Recorder, Subject
from hansa.control.informer import Informers, Scope
from hansa.kube import errors as api_errors
from hansa.kube.client import Client
from hansa.kube.objects import Key, Object
from hansa.model import keys
from hansa.runtime import backoff, clock, errors, metrics
from hansa.tenancy import api, refusals, status
from hansa.tenancy.api import (
    CLUSTER_VERSIONS,
    VIRTUAL_CLUSTERS,
    BadVirtualCluster,
    ConditionType,
    Network,
    Phase,
    VirtualCluster,
)
from hansa.tenancy.provisioning import Gone, Progress, Provisioner, Ready
from hansa.tenancy.service_pool import ServicePool
from hansa.tenancy.status import Report, Verdict
from hansa.tenancy.tenant import Tenant
from hansa.tenancy.version_keeping import Choice

log = logging.getLogger(__name__)
RETRIES = backoff.Backoff(first=1.0, factor=2.0, most=60.0, jitter=0.2)
AUDIT_SECONDS = 60.0  # in which what nobody watches (Secrets, namespaces, certificates that end) is looked at
FIRST_LIST_SECONDS = 60.0
LOOK_AGAIN = 60.0  # seconds, after which a refusal is judged again although nothing that we watch changed


class VirtualClusters:
    """All VirtualClusters of a meta cluster. New ones go to `default`, those that name a kubeconfig to `existing`."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        *,
        provisioners: Mapping[str, Provisioner],
        default: str,
        pool: ServicePool,
        recorder: Recorder,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
        workers: int = 10,
        deadline: float = 600.0,
    ) -> None:
        self._client, self._informers, self._recorder, self._clock = client, informers, recorder, clock
        self._provisioners, self._default, self._pool = provisioners, default, pool
        self._queue: queue.Queue[Key] = queue.Queue(
            "virtual clusters", clock=clock, random=random, metrics=metrics, retries=RETRIES, width=workers
        )
        self._controller = controller.Controller(
            "virtual clusters",
            self._reconcile,
            queue=self._queue,
            metrics=metrics,
            workers=workers,
            deadline=deadline,
        )
        self._vcs: store.Store | None = None
        self._allotting = asyncio.Lock()
        self._making: dict[Key, asyncio.Task[Ready | Progress]] = {}
        self._audit = Audit(self._keys, self._queue.add, period=AUDIT_SECONDS, clock=clock)
        self._times = metrics.histogram(
            "hansa_tenant_seconds",
            "From a VirtualCluster's creation to its running.",
            bounds=(1, 2, 3, 4, 5, 6, 8, 10, 15, 30, 60, 120, 300, 600),
        ).of()
        self._upgrades = metrics.counter("hansa_tenant_upgrades_total", "Upgrades, by outcome.", labels=["outcome"])
        phases = metrics.gauge("hansa_virtual_clusters", "VirtualClusters by phase.", labels=["phase"])
        phases.read(self._count)

    async def run(self) -> None:
        """Look after all of them until drained."""
        async with (
            self._informers.share(Scope(VIRTUAL_CLUSTERS)) as self._vcs,
            self._informers.share(Scope(CLUSTER_VERSIONS)) as versions,
        ):
            self._vcs.index("version", _version_of)
            ends = (
                self._vcs.listen(self._look, table.own_key),
                versions.listen(self._wake_users, lambda version: [version.name]),
            )
            try:
                await self._controller.run()
            finally:
                for end in ends:
                    end()

    async def audit(self) -> None:
        """Look at everything now and then."""
        await self._audit.run()

    async def ready(self) -> None:
        """Wait until all VirtualClusters are known."""
        async with self._informers.share(Scope(VIRTUAL_CLUSTERS)) as vcs:
            await vcs.knowledge.wait_complete(FIRST_LIST_SECONDS)

    def drain(self) -> None:
        """Begin nothing new."""
        self._controller.drain()

    def wake(self, key: Key, seconds: float = 0.0) -> None:
        """Have one looked at."""
        self._queue.add_after(key, seconds)

    async def _reconcile(self, key: Key) -> controller.Outcome:
        assert self._vcs is not None  # the controller runs inside of `run`
        found = self._vcs.get(key)
        if found is None:
            return controller.Done()
        vc = api.virtual_cluster(found)
        provisioner = self._provisioners.get(vc.provisioner or self._default)
        if provisioner is None:
            return controller.Done()  # another manager's
        tenant = Tenant(vc, self._client, provisioner, self._clock)
        if vc.is_leaving:
            return await self._remove(tenant)
        try:
            return await self._ensure(tenant)
        except (api_errors.Conflict, api_errors.Unreachable, api_errors.Throttled):
            raise  # says something of the meta cluster, nothing of the tenant
        except BadVirtualCluster as error:
            await self._tell(vc, refusals.report(vc, error))
            return controller.After(LOOK_AGAIN)
        except errors.HansaError as error:
            await self._tell(vc, status.failed(vc, str(error)))
            raise

    async def _ensure(self, tenant: Tenant) -> controller.Outcome:
        vc = tenant.vc
        if (held := await tenant.hold()) is not None:
            return self._again(held)
        if vc.service_cidr is None or vc.status.phase == Phase.NEW:
            return self._again(await self._begin(vc))
        choice = await tenant.choose()
        is_upgrade = vc.is_running and vc.object.labels.get(keys.VERSION_APPLIED) != choice.version.version
        if is_upgrade and vc.status.phase != Phase.UPDATING:
            message = f"brings the control plane to ClusterVersion {choice.version.name}"
            return self._again(await self._tell(vc, status.working(vc, message, is_upgrade=True)))
        match await self._make(tenant, choice, vc.service_cidr):
            case None:
                return controller.After(0.0)
            case Progress(reason, after):
                await self._tell(vc, status.working(vc, reason, is_upgrade=is_upgrade))
                return controller.After(after)
            case Ready():
                await self._running(tenant, choice)
        return controller.Done()

    def _look(self, key: Key) -> None:
        """Have one looked at; what is being made for one that leaves by now is given up."""
        found = self._vcs.get(key) if self._vcs else None
        if (found is None or found.is_leaving) and (making := self._making.get(key)):
            making.cancel()
        self._queue.add(key)

    async def _make(self, tenant: Tenant, choice: Choice, services: Network) -> Ready | Progress | None:
        """What the provisioner says; None if it was stopped, because the VirtualCluster leaves."""
        key = tenant.vc.key
        making = self._making[key] = asyncio.ensure_future(tenant.ensure(choice, services))
        try:
            return await making
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is None or current.cancelling():
                making.cancel()
                await asyncio.wait([making])
                raise
            return None
        finally:
            del self._making[key]

    async def _begin(self, vc: VirtualCluster) -> Object | None:
        """The first words about a new one, and its range of service addresses, which nobody else may get."""
        report = status.working(vc, "the tenant control plane is being created", is_upgrade=False)
        async with self._allotting:  # until it is written and seen, nobody else may choose
            services = str(vc.service_cidr or self._pool.free(self._used_ranges()))
            return await self._tell(vc, replace(report, more={"serviceCidr": services}))

    async def _running(self, tenant: Tenant, choice: Choice) -> None:
        vc = tenant.vc
        was_running, was_upgrade = vc.is_running, vc.status.phase == Phase.UPDATING
        if (told := await tenant.tell_applied(choice)) is not None:
            self._observe(told)
            vc = api.virtual_cluster(told)
        report = status.running(is_upgraded=was_upgrade or vc.status.reason == status.UPGRADED)
        found = Verdict(not choice.missing, "Found" if not choice.missing else "NotFound", choice.missing)
        conditions = {
            **report.conditions,
            ConditionType.CLUSTER_VERSION_FOUND: found,
            ConditionType.ROOT_NAMESPACE_READY: Verdict(True, "Made"),
        }
        more = {"clusterVersion": choice.version.name}
        await self._tell(vc, replace(report, conditions=conditions, more=more))
        if not was_running and vc.object.metadata.creation_timestamp:
            self._times.observe((self._clock.wall() - vc.object.metadata.creation_timestamp).total_seconds())
        if was_upgrade:
            self._upgrades.of("completed").inc()

    async def _remove(self, tenant: Tenant) -> controller.Outcome:
        match await tenant.remove():
            case Progress(reason, after):
                report = Report(Phase(tenant.vc.status.phase), status.LEAVING, reason)
                await self._tell(tenant.vc, report)
                return controller.After(after)
            case Gone(left):
                if left:
                    self._recorder.record(Subject.of(tenant.vc.object), status.LEFT_BEHIND, left, kind=Kind.WARNING)
                log.info("a tenant's control plane is gone", extra={"namespace": tenant.vc.root})
        return controller.Done()

    async def _tell(self, vc: VirtualCluster, report: Report) -> Object | None:
        """Write the status if it says another thing, and an event when a person may want to know."""
        patch = status.patch(vc, report, self._clock.wall())
        if not patch:
            return None
        if vc.status.phase == Phase.UPDATING and report.reason == status.UPGRADE_FAILED != vc.status.reason:
            self._upgrades.of("failed").inc()
        if (report.phase, report.reason, report.message) != (vc.status.phase, vc.status.reason, vc.status.message):
            is_well = report.reason in (status.CREATING, status.RUNNING, status.UPGRADED, status.UPGRADING)
            kind = Kind.NORMAL if is_well else Kind.WARNING
            self._recorder.record(Subject.of(vc.object), report.reason, report.message, kind=kind)
            log.log(
                logging.INFO if is_well else logging.WARNING,
                "a tenant's control plane",
                extra={"phase": str(report.phase), "reason": report.reason, "says": report.message},
            )
        # The version: what was decided on an old state must not overwrite what a newer one says.
        patch["metadata"] = {"uid": vc.uid, "resourceVersion": vc.object.version}
        told = await self._client.patch(VIRTUAL_CLUSTERS, vc.name, patch, namespace=vc.namespace, subresource="status")
        self._observe(told)
        return told

    def _observe(self, obj: Object) -> None:
        if self._vcs is not None:
            self._vcs.observe(obj)

    def _again(self, written: Object | None) -> controller.Outcome:
        """Go on with what was written, which wakes us by itself where it changed something."""
        if written is None:
            return controller.After(0.0)
        self._observe(written)
        return controller.Done()

    def _used_ranges(self) -> list[Network]:
        assert self._vcs is not None
        found = []
        for obj in self._vcs.values():
            with contextlib.suppress(BadVirtualCluster):  # one that cannot be read has no range
                if (services := api.virtual_cluster(obj).service_cidr) is not None:
                    found.append(services)
        return found

    def _wake_users(self, version: str) -> None:
        assert self._vcs is not None
        for obj in self._vcs.find("version", version):
            self._queue.add(obj.key)

    def _keys(self) -> list[Key]:
        return list(self._vcs or ())

    def _count(self) -> dict[tuple[str, ...], float]:
        phases = Counter(str(obj.status.get("phase") or "New") for obj in (self._vcs.values() if self._vcs else ()))
        return {(phase,): float(number) for phase, number in phases.items()}


def _version_of(vc: Object) -> tuple[str]:
    return (str(vc.spec.get("clusterVersionName") or ""),)
