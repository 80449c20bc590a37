"""The controller of VirtualClusters: creates, repairs, upgrades and removes their control planes.

`hansa vc-manager` runs it. A failure is reported in the status and retried forever; what runs stays as it is. How a
control plane runs is left to provisioners.
"""

import asyncio
import contextlib
import logging
import random as randomness
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import msgspec

from hansa.control import controller, queue, store, table
from hansa.control.audit import Audit
from hansa.control.event_recorder import EventType, InvolvedObject, Recorder
from hansa.control.informer import Informers, Scope
from hansa.kube import errors as api_errors
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys
from hansa.runtime import backoff, clock, errors, metrics
from hansa.tenancy import api
from hansa.tenancy.api import (
    CLUSTER_VERSIONS,
    VIRTUAL_CLUSTERS,
    BadVirtualCluster,
    ConditionState,
    ConditionType,
    KubeletClient,
    Network,
    Phase,
    VirtualCluster,
)
from hansa.tenancy.operator import failures, status
from hansa.tenancy.operator.provisioning import Progress, Provisioner, Ready, Removed
from hansa.tenancy.operator.service_cidrs import ServiceCidrPool
from hansa.tenancy.operator.status import Report
from hansa.tenancy.operator.tenant import Tenant
from hansa.tenancy.operator.version_choice import Choice

log = logging.getLogger(__name__)
RETRIES = backoff.Backoff(first=1.0, factor=2.0, most=60.0, jitter=0.2)
AUDIT_SECONDS = 60.0  # between two reconciles of all: Secrets, namespaces and expiring certificates are not watched
FIRST_LIST_SECONDS = 60.0
RECHECK_SECONDS = 60.0  # until an invalid VirtualCluster is reconciled again although nothing watched has changed


class VirtualClusters:
    """Reconciles all VirtualClusters of a meta cluster.

    The provisioner named `default` gets new ones, `existing` those with a kubeconfig.
    """

    def __init__(
        self,
        client: Client,
        informers: Informers,
        *,
        provisioners: Mapping[str, Provisioner],
        default: str,
        pool: ServiceCidrPool,
        recorder: Recorder,
        clock: clock.Clock,
        random: randomness.Random,
        metrics: metrics.Registry,
        workers: int = 10,
        deadline: float = 600.0,
    ) -> None:
        self._client, self._informers, self._recorder, self._clock = client, informers, recorder, clock
        self._provisioners, self._default, self._pool = provisioners, default, pool
        self._queue: queue.Queue[NamespacedName] = queue.Queue(
            "virtualclusters", clock=clock, random=random, metrics=metrics, retries=RETRIES, width=workers
        )
        self._controller = controller.Controller(
            "virtualclusters",
            self._reconcile,
            queue=self._queue,
            metrics=metrics,
            workers=workers,
            deadline=deadline,
        )
        self._vcs: store.Store | None = None
        self._records = True  # whether the CustomResourceDefinition has status.kubeletClient
        self._cidr_lock = asyncio.Lock()
        self._provisioning: dict[NamespacedName, asyncio.Task[Ready | Progress | KubeletClient]] = {}
        self._audit = Audit(self._keys, self._queue.add, period=AUDIT_SECONDS, clock=clock)
        self._times = metrics.histogram(
            "hansa_tenant_provision_seconds",
            "Time from the creation of a VirtualCluster to phase Running.",
            bounds=(1, 2, 3, 4, 5, 6, 8, 10, 15, 30, 60, 120, 300, 600),
        )
        self._upgrades = metrics.counter(
            "hansa_tenant_upgrades_total", "Upgrades of tenant control planes, by outcome.", labels=["outcome"]
        )
        phases = metrics.gauge("hansa_virtual_clusters", "VirtualClusters by phase.", labels=["phase"])
        phases.read(self._count)

    async def run(self) -> None:
        """Reconcile until drained."""
        async with (
            self._informers.share(Scope(VIRTUAL_CLUSTERS)) as self._vcs,
            self._informers.share(Scope(CLUSTER_VERSIONS)) as versions,
        ):
            self._vcs.index("version", _version_of)
            ends = (
                self._vcs.listen(self._enqueue, table.own_key),
                versions.listen(self._enqueue_users, lambda version: [version.name]),
            )
            try:
                await self._controller.run()
            finally:
                for end in ends:
                    end()

    async def audit(self) -> None:
        """Requeue all VirtualClusters periodically."""
        await self._audit.run()

    async def ready(self) -> None:
        """Wait for the first list of VirtualClusters."""
        async with self._informers.share(Scope(VIRTUAL_CLUSTERS)) as vcs:
            await vcs.freshness.wait_synced(FIRST_LIST_SECONDS)

    def drain(self) -> None:
        """Finish the reconciles that run, and start no others."""
        self._controller.drain()

    def requeue(self, key: NamespacedName, seconds: float = 0.0) -> None:
        """Reconcile a VirtualCluster after a delay."""
        self._queue.add_after(key, seconds)

    async def _reconcile(self, key: NamespacedName) -> controller.Outcome:
        assert self._vcs is not None  # the controller runs inside of `run`
        found = self._vcs.get(key)
        if found is None:
            return controller.Done()
        vc = api.virtual_cluster(found)
        provisioner = self._provisioners.get(vc.provisioner or self._default)
        if provisioner is None:
            return controller.Done()  # managed by another vc-manager
        tenant = Tenant(vc, self._client, provisioner, self._clock)
        if vc.is_deleting:
            return await self._remove(tenant)
        try:
            return await self._ensure(tenant)
        except (api_errors.Conflict, api_errors.Unreachable, api_errors.Throttled):
            raise  # a failure of the meta cluster is not a state of the tenant
        except BadVirtualCluster as error:
            await self._report(vc, failures.report(vc, error))
            return controller.After(RECHECK_SECONDS)
        except errors.HansaError as error:
            await self._report(vc, status.failed(vc, str(error)))
            raise

    async def _ensure(self, tenant: Tenant) -> controller.Outcome:
        vc = tenant.vc
        if (updated := await tenant.add_finalizer()) is not None:
            return self._proceed(updated)
        if vc.service_cidr is None or vc.status.phase == Phase.NEW:
            return self._proceed(await self._initialize(vc))
        choice = await tenant.choose_version()
        is_upgrade = vc.is_running and vc.object.labels.get(keys.VERSION_APPLIED) != choice.version.version
        if is_upgrade and vc.status.phase != Phase.UPDATING:
            message = f"upgrading the control plane to ClusterVersion {choice.version.name}"
            return self._proceed(await self._report(vc, status.working(vc, message, is_upgrade=True)))
        return await self._advance(tenant, choice, vc.service_cidr, is_upgrade=is_upgrade)

    async def _advance(
        self, tenant: Tenant, choice: Choice, services: Network, *, is_upgrade: bool
    ) -> controller.Outcome:
        vc = tenant.vc
        match await self._provision(tenant, choice, services):
            case None:
                return controller.After(0.0)
            case KubeletClient() as client:
                return self._proceed(await self._record(vc, client))
            case Progress(reason, after):
                await self._report(vc, status.working(vc, reason, is_upgrade=is_upgrade))
                return controller.After(after)
            case Ready():
                await self._running(tenant, choice)
        return controller.Done()

    def _enqueue(self, key: NamespacedName) -> None:
        """Add a key to the queue; cancel the provisioning of one that is deleted."""
        found = self._vcs.get(key) if self._vcs else None
        if (found is None or found.is_deleting) and (running := self._provisioning.get(key)):
            running.cancel()
        self._queue.add(key)

    async def _provision(
        self, tenant: Tenant, choice: Choice, services: Network
    ) -> Ready | Progress | KubeletClient | None:
        """Run the provisioner; None if it was cancelled because the VirtualCluster is deleted."""
        key = tenant.vc.key
        running = self._provisioning[key] = asyncio.ensure_future(
            tenant.ensure(choice, services, records=self._records)
        )
        try:
            return await running
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is None or current.cancelling():
                running.cancel()
                await asyncio.wait([running])
                raise
            return None
        finally:
            del self._provisioning[key]

    async def _initialize(self, vc: VirtualCluster) -> Object | None:
        """Write the first status of a new one, with a service CIDR that no other tenant has."""
        report = status.working(vc, "creating the tenant control plane", is_upgrade=False)
        async with self._cidr_lock:  # held until the choice is in the cache, where the next one reads it
            services = str(vc.service_cidr or self._pool.free(self._used_ranges()))
            return await self._report(vc, replace(report, more={"serviceCidr": services}))

    async def _running(self, tenant: Tenant, choice: Choice) -> None:
        vc = tenant.vc
        was_running, was_upgrade = vc.is_running, vc.status.phase == Phase.UPDATING
        if (labelled := await tenant.label_applied(choice)) is not None:
            self._observe(labelled)
            vc = api.virtual_cluster(labelled)
        report = status.running(is_upgraded=was_upgrade or vc.status.reason == status.UPGRADED)
        found = ConditionState(not choice.missing, "Found" if not choice.missing else "NotFound", choice.missing)
        conditions = {
            **report.conditions,
            ConditionType.CLUSTER_VERSION_FOUND: found,
            ConditionType.ROOT_NAMESPACE_READY: ConditionState(True, "Made"),
        }
        more = {"clusterVersion": choice.version.name}
        await self._report(vc, replace(report, conditions=conditions, more=more))
        if not was_running and vc.object.metadata.creation_timestamp:
            self._times.observe((self._clock.wall() - vc.object.metadata.creation_timestamp).total_seconds())
        if was_upgrade:
            self._upgrades.labels("completed").inc()

    async def _remove(self, tenant: Tenant) -> controller.Outcome:
        match await tenant.remove():
            case Progress(reason, after):
                report = Report(Phase(tenant.vc.status.phase), status.LEAVING, reason)
                await self._report(tenant.vc, report)
                return controller.After(after)
            case Removed(left_behind):
                if left_behind:
                    self._recorder.record(
                        InvolvedObject.of(tenant.vc.object),
                        status.LEFT_BEHIND,
                        left_behind,
                        event_type=EventType.WARNING,
                    )
                log.info("control plane removed", extra={"namespace": tenant.vc.root})
        return controller.Done()

    async def _report(self, vc: VirtualCluster, report: Report) -> Object | None:
        """Write the status if it differs, with an event and a log line if phase, reason or message changed."""
        patch = status.patch(vc, report, self._clock.wall())
        if not patch:
            return None
        if vc.status.phase == Phase.UPDATING and report.reason == status.UPGRADE_FAILED != vc.status.reason:
            self._upgrades.labels("failed").inc()
        if (report.phase, report.reason, report.message) != (vc.status.phase, vc.status.reason, vc.status.message):
            is_normal = report.reason in (status.CREATING, status.RUNNING, status.UPGRADED, status.UPGRADING)
            event_type = EventType.NORMAL if is_normal else EventType.WARNING
            self._recorder.record(InvolvedObject.of(vc.object), report.reason, report.message, event_type=event_type)
            log.log(
                logging.INFO if is_normal else logging.WARNING,
                "control plane status changed",
                extra={"phase": str(report.phase), "reason": report.reason, "detail": report.message},
            )
        return await self._write(vc, patch["status"])

    async def _record(self, vc: VirtualCluster, client: KubeletClient) -> Object | None:
        """Record the certificate of the API server; None if the definition lacks the field, which is then left out."""
        written = await self._write(vc, {"kubeletClient": msgspec.to_builtins(client)})
        if self._records and api.virtual_cluster(written).status.kubelet_client != client:
            self._records = False
            log.warning(
                "vn-agents know no tenant: the CustomResourceDefinition virtualclusters.tenancy.x-k8s.io has no"
                " status.kubeletClient; apply deploy/crds and restart vc-manager"
            )
        return written if self._records else None

    async def _write(self, vc: VirtualCluster, changes: Mapping[str, object]) -> Object:
        """Patch the status. With the resourceVersion a decision on a stale object is a conflict, not an overwrite."""
        patch = {"metadata": {"uid": vc.uid, "resourceVersion": vc.object.version}, "status": changes}
        written = await self._client.patch(
            VIRTUAL_CLUSTERS, vc.name, patch, namespace=vc.namespace, subresource="status"
        )
        self._observe(written)
        return written

    def _observe(self, obj: Object) -> None:
        if self._vcs is not None:
            self._vcs.observe(obj)

    def _proceed(self, written: Object | None) -> controller.Outcome:
        """Reconcile again: the written object triggers it by the cache; without one it is requeued."""
        if written is None:
            return controller.After(0.0)
        self._observe(written)
        return controller.Done()

    def _used_ranges(self) -> list[Network]:
        assert self._vcs is not None
        found = []
        for obj in self._vcs.values():
            with contextlib.suppress(BadVirtualCluster):  # an unreadable one has no range
                if (services := api.virtual_cluster(obj).service_cidr) is not None:
                    found.append(services)
        return found

    def _enqueue_users(self, version: str) -> None:
        assert self._vcs is not None
        for obj in self._vcs.find("version", version):
            self._queue.add(obj.key)

    def _keys(self) -> list[NamespacedName]:
        return list(self._vcs or ())

    def _count(self) -> dict[tuple[str, ...], float]:
        phases = Counter(str(obj.status.get("phase") or "New") for obj in (self._vcs.values() if self._vcs else ()))
        return {(phase,): float(number) for phase, number in phases.items()}


def _version_of(vc: Object) -> tuple[str]:
    return (str(vc.spec.get("clusterVersionName") or ""),)
