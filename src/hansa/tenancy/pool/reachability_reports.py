"""Syncers report in the meta cluster which super clusters they reach: nobody gives those up whom another one reaches.

A report is a Lease for each super cluster. Only that it changes matters, by the clock of whoever reads it.
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
from hansa.runtime import clock

NAME: Final = "hansa-reaches-"  # and an id
PERIOD: Final = 1.0  # seconds, after which it is asked again whether reports can be read


@dataclass(frozen=True, slots=True)
class Reporter:
    """Who reports, and where in the meta cluster."""

    meta: Client
    holder: str
    namespace: str
    clock: clock.Clock

    async def report(self, cluster: str) -> None:
        """We reach a super cluster."""
        name, now = f"{NAME}{cluster}", self.clock.wall().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        said = {
            "metadata": {"namespace": self.namespace, "name": name, "labels": {keys.REACHES: cluster}},
            "spec": {"holderIdentity": self.holder, "renewTime": now},
        }
        try:
            await self.meta.patch(resources.LEASES, name, said, namespace=self.namespace)
        except errors.NotFound:
            kind = {"apiVersion": resources.LEASES.api_version, "kind": resources.LEASES.kind}
            await self.meta.create(resources.LEASES, Object.of({**kind, **said}))


class Reports:
    """Reads them: `vouch` is called for each super cluster that somebody reaches, or may reach."""

    def __init__(
        self,
        meta: Cluster,
        namespace: str,
        *,
        clusters: Callable[[], Collection[str]],
        vouch: Callable[[str], None],
        clock: clock.Clock,
    ) -> None:
        self._meta, self._scope = meta, Scope(resources.LEASES, namespace=namespace, labels=keys.REACHES)
        self._clusters, self._vouch, self._clock = clusters, vouch, clock

    async def run(self) -> None:
        """Follow the reports until cancelled."""
        async with self._meta.informers.share(self._scope) as leases:
            end = leases.listen(self._vouch, _cluster)
            try:
                while True:
                    for cluster in self._clusters() if self._meta.health.trouble else ():
                        self._vouch(cluster)  # what cannot be heard may well be said
                    await self._clock.sleep(PERIOD)
            finally:
                end()


def _cluster(report: Object) -> tuple[str, ...]:
    return (report.labels[keys.REACHES],)
