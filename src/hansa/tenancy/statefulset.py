"""Runs tenants' control planes as StatefulSets of a ClusterVersion, in their root namespaces of the meta cluster.

Objects are applied one component after the other, each when the former is ready; what pods do is the cluster's matter.
"""

import contextlib
import ipaddress

from hansa.kube import resources, watching
from hansa.kube.client import Client
from hansa.kube.objects import Key, Object
from hansa.model import keys
from hansa.tenancy import statefulset_objects
from hansa.tenancy.api import BadVirtualCluster, VirtualCluster
from hansa.tenancy.pki import Pki
from hansa.tenancy.provisioning import Endpoint, Gone, Order, Progress, Ready, Wake

FIELD_MANAGER = "virtualcluster/provisioner/native"
LOOK_AGAIN = 60.0  # seconds; the watch wakes us sooner


class StatefulSets:
    """The provisioner."""

    name = "native"

    def __init__(self, client: Client) -> None:
        self._client = client

    async def locate(self, order: Order) -> Endpoint | Progress:
        """The API server's Service comes first: its address stands in the certificate."""
        wanted = statefulset_objects.service(statefulset_objects.APISERVER, order)
        if wanted is None:
            raise BadVirtualCluster(f"ClusterVersion {order.version.name} has no Service for its API server")
        service = await self._apply(wanted)
        address = service.spec.get("clusterIP") or ""
        if address in ("", "None"):
            raise BadVirtualCluster(f"Service {service.name} of ClusterVersion {order.version.name} has no ClusterIP")
        server = f"https://{_host(address)}:{service.spec['ports'][0]['port']}"
        within = (service.name, f"{service.name}.{order.root}", f"{service.name}.{order.root}.svc")
        return Endpoint(
            server=server,
            inner_server=server,
            names=(*within, address),
            etcd_names=statefulset_objects.etcd_names(order),
        )

    async def ensure(self, order: Order, pki: Pki) -> Ready | Progress:
        """Apply a component, and the next one when it is ready."""
        ready: list[str] = []
        for component in statefulset_objects.components(order, pki):
            if component.service is not None:
                await self._apply(component.service)
            statefulset = await self._apply(component.statefulset)
            if waits_for := lacking(statefulset):
                told = f"{' and '.join(ready)} {'are' if len(ready) > 1 else 'is'} ready, " if ready else ""
                return Progress(f"{told}{component.name} is not ready: {waits_for}", after=LOOK_AGAIN)
            ready.append(component.name)
        return Ready()

    async def remove(self, vc: VirtualCluster) -> Gone:
        """All that it is goes with the root namespace."""
        return Gone()

    async def run(self, wake: Wake) -> None:
        """Have a control plane looked at whenever one of its StatefulSets changes."""
        changes = watching.watch(self._client, resources.STATEFUL_SETS, labels=keys.TENANT_CLUSTER)
        async with contextlib.aclosing(changes):
            async for change in changes:
                match change:
                    case watching.Added(obj) | watching.Modified(obj) | watching.Deleted(obj) if key := _owner(obj):
                        wake(key, 0.0)

    async def _apply(self, obj: Object) -> Object:
        resource = next(one for one in (resources.STATEFUL_SETS, resources.SERVICES) if one.kind == obj.kind)
        return await self._client.apply(resource, obj, field_manager=FIELD_MANAGER, force=True)


def lacking(statefulset: Object) -> str:
    """What a StatefulSet still has to do, as a part of a sentence; empty when it has done all."""
    spec, status = statefulset.spec, statefulset.status
    replicas = spec.get("replicas", 1)
    if status.get("observedGeneration", 0) < statefulset.metadata.generation:
        return "nobody has seen its StatefulSet yet"
    is_rolling = (spec.get("updateStrategy") or {}).get("type", "RollingUpdate") == "RollingUpdate"
    updated = status.get("updatedReplicas", 0)
    if is_rolling and status.get("currentRevision") != status.get("updateRevision") and updated < replicas:
        return f"{updated} of {replicas} pods are updated"
    ready = status.get("readyReplicas", 0)
    return f"{ready} of {replicas} pods are ready" if ready < replicas else ""


def _owner(statefulset: Object) -> Key | None:
    namespace = statefulset.annotations.get(keys.VC_NAMESPACE, "")
    name = statefulset.annotations.get(keys.VC_NAME, "")
    return Key(namespace, name) if namespace and name else None


def _host(address: str) -> str:
    return f"[{address}]" if ipaddress.ip_address(address).version == 6 else address
