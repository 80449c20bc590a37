"""The provisioner `native`: runs control planes as the StatefulSets of a ClusterVersion, in their root namespaces.

Components are applied one after the other, each when the one before it is ready. The objects are made by
`statefulset_objects`; pods are left to the meta cluster.
"""

import contextlib

from hansa.kube import errors, readiness, resources, watching
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys
from hansa.tenancy.api import BadVirtualCluster, VirtualCluster
from hansa.tenancy.operator import etcd_storage, service_address, statefulset_objects, tenant_client
from hansa.tenancy.operator.etcd_storage import EtcdStorage
from hansa.tenancy.operator.pki import Pki
from hansa.tenancy.operator.provisioning import DesiredControlPlane, Endpoint, Progress, Ready, Removed, Requeue
from hansa.tenancy.operator.service_address import Access
from hansa.tenancy.operator.statefulset_objects import Component

APPLIED = (resources.STATEFUL_SETS, resources.SERVICES, resources.CONFIG_MAPS, resources.NETWORK_POLICIES)
FIELD_MANAGER = "virtualcluster/provisioner/native"
FIRST_OBJECTS_SECONDS = 1.0  # between two checks whether the controllers created what pods need
BALANCER_SECONDS = 5.0  # between two checks whether a load balancer has an address
RECHECK_SECONDS = 60.0  # a change of a StatefulSet requeues sooner


class StatefulSets:
    """The provisioner."""

    name = "native"

    def __init__(
        self,
        client: Client,
        *,
        vn_agent_ca: bytes = b"",
        storage: EtcdStorage = etcd_storage.DEFAULT,
        access: Access = Access.SERVICE,
    ) -> None:
        self._client, self._vn_agent_ca = client, vn_agent_ca
        self._storage, self._access = storage, access

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
        inner = service_address.url(address, service.spec["ports"][0]["port"])
        server = await service_address.find(self._client, service, self._access)
        if server is None:
            return Progress(f"Service {service.name} has no load balancer address", after=BALANCER_SECONDS)
        within = (service.name, f"{service.name}.{desired.root}", f"{service.name}.{desired.root}.svc")
        return Endpoint(
            server=server,
            inner_server=inner,
            names=(*within, address),
            etcd_names=statefulset_objects.etcd_names(desired),
            server_name="" if server == inner else service_address.SERVER_NAME,
        )

    async def ensure(self, desired: DesiredControlPlane, pki: Pki) -> Ready | Progress:
        """Apply each component when the one before it is ready."""
        for policy in statefulset_objects.network_policies(desired):
            await self._apply(policy)
        ready: list[str] = []
        if self._vn_agent_ca:
            await self._apply(statefulset_objects.vn_agent_config(desired, self._vn_agent_ca))
        for component in await self._components(desired, pki):
            if component.service is not None:
                await self._apply(component.service)
            statefulset = await self._apply(component.statefulset)
            if pending := unready(statefulset):
                before = f" (ready: {', '.join(ready)})" if ready else ""
                claim = await self._pending_claim(statefulset)
                return Progress(f"{component.name} is not ready: {pending}{before}{claim}", after=RECHECK_SECONDS)
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

    async def _components(self, desired: DesiredControlPlane, pki: Pki) -> list[Component]:
        live = None
        with contextlib.suppress(errors.NotFound):
            name = statefulset_objects.etcd_name(desired)
            live = await self._client.get(resources.STATEFUL_SETS, name, namespace=desired.root)
        return statefulset_objects.components(
            desired, pki, vn_agent_ca=self._vn_agent_ca, storage=self._storage, live_etcd=live
        )

    async def _pending_claim(self, statefulset: Object) -> str:
        """A claim of this StatefulSet that has no volume, as a part of a message."""
        if not statefulset.spec.get("volumeClaimTemplates"):
            return ""
        claims = (await self._client.list(resources.PERSISTENT_VOLUME_CLAIMS, namespace=statefulset.namespace)).items
        for claim in claims:
            if claim.status.get("phase") == "Pending":
                wanted = claim.spec.get("storageClassName")
                of = f"StorageClass {wanted}" if wanted else "no StorageClass: the cluster has no default one"
                return f"; PersistentVolumeClaim {claim.name} is Pending ({of}); see --etcd-storage of vc-manager"
        return ""

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
