"""Reports of vc-syncer about the super clusters it reaches: a Lease for each in the meta cluster.

vc-scheduler watches them, so that it does not count a super cluster as lost that vc-syncer reaches. A report counts
from when the watch delivers it; wall clocks are not compared.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

from hansa.control.informer import Scope
from hansa.engine.cluster import Cluster
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.runtime import clock, timestamps

NAME_PREFIX: Final = "hansa-reaches-"  # followed by the id of a super cluster
CHECK_SECONDS: Final = 1.0  # between two checks of whether the meta cluster is reachable


@dataclass(frozen=True, slots=True)
class Reporter:
    """Writes reports to a namespace of the meta cluster."""

    meta: Client
    holder: str
    namespace: str
    clock: clock.Clock

    async def report(self, cluster: str) -> None:
        """Report that a super cluster is reachable."""
        name, now = f"{NAME_PREFIX}{cluster}", timestamps.micro_time(self.clock.wall())
        lease = {
            "metadata": {"namespace": self.namespace, "name": name, "labels": {keys.REACHES: cluster}},
            "spec": {"holderIdentity": self.holder, "renewTime": now},
        }
        try:
            await self.meta.patch(resources.LEASES, name, lease, namespace=self.namespace)
        except errors.NotFound:
            kind = {"apiVersion": resources.LEASES.api_version, "kind": resources.LEASES.kind}
            await self.meta.create(resources.LEASES, Object.of({**kind, **lease}))


class Reports:
    """Watches reports: `report_reachable` is called for each super cluster that vc-syncer reaches, or may reach."""

    def __init__(
        self,
        meta: Cluster,
        namespace: str,
        *,
        clusters: Callable[[], Collection[str]],
        report_reachable: Callable[[str], None],
        clock: clock.Clock,
    ) -> None:
        self._meta, self._scope = meta, Scope(resources.LEASES, namespace=namespace, labels=keys.REACHES)
        self._clusters, self._report_reachable, self._clock = clusters, report_reachable, clock

    async def run(self) -> None:
        """Watch the reports until cancelled."""
        async with self._meta.informers.share(self._scope) as leases:
            end = leases.listen(self._report_reachable, _cluster)
            try:
                while True:
                    for cluster in self._clusters() if self._meta.health.error else ():
                        self._report_reachable(cluster)  # a report may exist that cannot be read
                    await self._clock.sleep(CHECK_SECONDS)
            finally:
                end()


def _cluster(report: Object) -> tuple[str, ...]:
    return (report.labels[keys.REACHES],)
