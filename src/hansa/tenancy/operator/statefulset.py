"""The provisioner `native`: runs control planes as the StatefulSets of a ClusterVersion, in their root namespaces.

Components are applied one after the other, each when the one before it is ready. The objects are made by
`statefulset_objects`; pods are left to the meta cluster.
"""

import contextlib
import ipaddress

from hansa.kube import readiness, resources, watching
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys
from hansa.tenancy.api import BadVirtualCluster, VirtualCluster
from hansa.tenancy.operator import statefulset_objects, tenant_client
from hansa.tenancy.operator.pki import Pki
from hansa.tenancy.operator.provisioning import DesiredControlPlane, Endpoint, Progress, Ready, Removed, Requeue

APPLIED = (resources.STATEFUL_SETS, resources.SERVICES, resources.CONFIG_MAPS, resources.NETWORK_POLICIES)
FIELD_MANAGER = "virtualcluster/provisioner/native"
FIRST_OBJECTS_SECONDS = 1.0  # between two checks whether the controllers created what pods need
RECHECK_SECONDS = 60.0  # a change of a StatefulSet requeues sooner


class StatefulSets:
    """The provisioner."""

    name = "native"

    def __init__(self, client: Client, *, vn_agent_ca: bytes = b"") -> None:
        self._client, self._vn_agent_ca = client, vn_agent_ca

    async def locate(self, desired: DesiredControlPlane) -> Endpoint | Progress:
        """Apply the API server's Service: its address has to be in the certificate."""
        wanted = statefulset_objects.service(statefulset_objects.APISERVER, desired)
        if wanted is None:
            raise BadVirtualCluster(f"ClusterVersion {desired.version.name} has no spec.apiServer.service; add one")
        service = await self._apply(wanted)
        address = service.spec.get("clusterIP") or ""
        if address in ("", "None"):
            raise BadVirtualCluster(
                f"Service {service.name} of ClusterVersion {desired.version.name} has no clusterIP;"
                " spec.apiServer.service must not be headless"
            )
        server = f"https://{_host(address)}:{service.spec['ports'][0]['port']}"
        within = (service.name, f"{service.name}.{desired.root}", f"{service.name}.{desired.root}.svc")
        return Endpoint(
            server=server,
            inner_server=server,
            names=(*within, address),
            etcd_names=statefulset_objects.etcd_names(desired),
        )

    async def ensure(self, desired: DesiredControlPlane, pki: Pki) -> Ready | Progress:
        """Apply each component when the one before it is ready."""
        for policy in statefulset_objects.network_policies(desired):
            await self._apply(policy)
        ready: list[str] = []
        if self._vn_agent_ca:
            await self._apply(statefulset_objects.vn_agent_config(desired, self._vn_agent_ca))
        for component in statefulset_objects.components(desired, pki, vn_agent_ca=self._vn_agent_ca):
            if component.service is not None:
                await self._apply(component.service)
            statefulset = await self._apply(component.statefulset)
            if pending := unready(statefulset):
                before = f" (ready: {', '.join(ready)})" if ready else ""
                return Progress(f"{component.name} is not ready: {pending}{before}", after=RECHECK_SECONDS)
            ready.append(component.name)
        if not desired.vc.is_running and await tenant_client.refuses_pods(pki):
            return Progress(readiness.NO_SERVICE_ACCOUNT, after=FIRST_OBJECTS_SECONDS)
        return Ready()

    async def remove(self, vc: VirtualCluster) -> Removed:
        """Do nothing: its objects are deleted with the root namespace."""
        return Removed()

    async def run(self, requeue: Requeue) -> None:
        """Requeue a VirtualCluster whenever one of its StatefulSets changes."""
        changes = watching.watch(self._client, resources.STATEFUL_SETS, labels=keys.TENANT_CLUSTER)
        async with contextlib.aclosing(changes):
            async for change in changes:
                match change:
                    case watching.Added(obj) | watching.Modified(obj) | watching.Deleted(obj) if key := _owner(obj):
                        requeue(key, 0.0)

    async def _apply(self, obj: Object) -> Object:
        resource = next(one for one in APPLIED if one.kind == obj.kind)
        return await self._client.apply(resource, obj, field_manager=FIELD_MANAGER, force=True)


def unready(statefulset: Object) -> str:
    """Why a StatefulSet is not ready; empty if it is."""
    spec, status = statefulset.spec, statefulset.status
    replicas = spec.get("replicas", 1)
    if status.get("observedGeneration", 0) < statefulset.metadata.generation:
        return "its StatefulSet has not been observed by the StatefulSet controller"
    is_rolling = (spec.get("updateStrategy") or {}).get("type", "RollingUpdate") == "RollingUpdate"
    updated = status.get("updatedReplicas", 0)
    if is_rolling and status.get("currentRevision") != status.get("updateRevision") and updated < replicas:
        return f"{updated} of {replicas} pods are updated"
    ready = status.get("readyReplicas", 0)
    return f"{ready} of {replicas} pods are ready" if ready < replicas else ""


def _owner(statefulset: Object) -> NamespacedName | None:
    namespace = statefulset.annotations.get(keys.VC_NAMESPACE, "")
    name = statefulset.annotations.get(keys.VC_NAME, "")
    return NamespacedName(namespace, name) if namespace and name else None


def _host(address: str) -> str:
    return f"[{address}]" if ipaddress.ip_address(address).version == 6 else address
