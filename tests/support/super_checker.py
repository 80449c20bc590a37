"""What a hostile tenant may have in the super cluster, asserted on the objects there, whatever made them.

It knows the promises of docs/security.md and nothing of the translations. Each finding is a sentence.
"""

import ipaddress
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hansa.kube import discovery, errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.kube.resource import Resource

VOLUMES: Final = frozenset(
    {"configMap", "secret", "emptyDir", "projected", "downwardAPI", "persistentVolumeClaim", "ephemeral", "image"}
)
PROJECTED: Final = frozenset({"configMap", "secret", "downwardAPI"})
OURS: Final = (
    *("hansa.dev/", "tenancy.x-k8s.io/", "downward.tenancy.x-k8s.io/", "namespace.tenancy.x-k8s.io/"),
    *("scheduler.tenancy.x-k8s.io/", "scheduler.virtualcluster.io/"),
)
SYNCED: Final = frozenset(
    {"kubectl.kubernetes.io/default-container", "kubectl.kubernetes.io/default-logs-container"}
    | {"service.kubernetes.io/topology-mode"}
)
# Written in the super cluster by its own controllers.
ITS_OWN: Final = (
    "pv.kubernetes.io/",
    "endpoints.kubernetes.io/",
    "volume.kubernetes.io/",
    "kubernetes.io/",
    "deprecated.",
)
CONTROL_PLANE: Final = ("node-role.kubernetes.io/", "CriticalAddonsOnly")
ROLES: Final = frozenset(f"node-role.kubernetes.io/{role}" for role in ("control-plane", "master", "etcd"))
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_CHANGING: Final = (
    "events",
    "leases",
    "ipaddresses",
    "componentstatuses",
    "podmetrics",
    "nodemetrics",
    "controllerrevisions",
)
_SET_THERE: Final = frozenset({"nodeName", "serviceAccountName", "serviceAccount", "priority", "preemptionPolicy"})
_NEGATIVE: Final = ("NotIn", "DoesNotExist")
Spec = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the administrators of the super cluster gave the tenant."""

    prefix: str  # of its namespaces
    upper_id: str
    judge: str  # a namespace whose admission enforces Pod Security baseline
    classes: frozenset[str] = frozenset()  # that are offered
    foreign_addresses: frozenset[str] = frozenset()  # of nodes, API servers and other tenants' pods
    static_volume: str = ""  # of the administrators


async def inventory(client: Client) -> dict[tuple[str, str, str], str]:
    """The uids of all objects of a cluster, by resource, namespace and name."""
    found: dict[tuple[str, str, str], str] = {}
    for offer in (await discovery.discover(client)).offers:
        if "list" in offer.verbs and offer.resource.plural not in _CHANGING:
            async for page in client.pages(offer.resource):
                found |= {(str(offer.resource), one.namespace, one.name): one.uid for one in page.items}
    return found


def outside(
    before: Mapping[tuple[str, str, str], str], after: Mapping[tuple[str, str, str], str], *prefixes: str
) -> list[str]:
    """What appeared, changed its uid or is gone, besides objects in namespaces with these prefixes."""
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    names = ((resource, namespace or name) for resource, namespace, name in changed)
    return sorted(f"{resource} {where} changed" for resource, where in names if not where.startswith(prefixes))


async def findings(client: Client, bounds: Bounds) -> list[str]:
    """All that a tenant has there and may not have."""
    found: list[str] = []
    judged = 0
    for resource, check in _CHECKS.items():
        async for page in client.pages(resource):
            for one in page.items:
                where = one.namespace or one.name
                if where.startswith(bounds.prefix):
                    name = f"{resource.kind} {one.key}"
                    found += [f"{name}: {sentence}" for sentence in (*_keys(one, resource), *check(one, bounds))]
                    if resource == resources.PODS:
                        judged += 1
                        found += [f"{name}: {refusal}" async for refusal in _baseline(client, one, bounds.judge)]
    found += [] if judged else ["no pod was judged"]
    if bounds.static_volume:
        volume = await client.get(resources.PERSISTENT_VOLUMES, bounds.static_volume)
        found += ["the administrators' volume is bound"] if volume.spec.get("claimRef") else []
    return found


def _keys(obj: Object, resource: Resource) -> Iterator[str]:
    for key in obj.annotations:
        if not key.startswith((*OURS, *ITS_OWN)) and key not in SYNCED:
            yield f"annotation {key}"
        if resource == resources.NAMESPACES and key in SYNCED:
            yield f"annotation {key}"
    if resource == resources.NAMESPACES:
        known = (*OURS, "kubernetes.io/metadata.name", "pod-security.kubernetes.io/")
        yield from (f"label {key}" for key in obj.labels if not key.startswith(known))


async def _baseline(client: Client, pod: Object, judge: str) -> AsyncIterator[str]:
    """The sentence by which the API server's own Pod Security admission refuses a pod's spec; other errors are raised.

    Fields that the super cluster sets are left out.
    """
    spec = {name: value for name, value in pod.spec.items() if name not in _SET_THERE}
    again = {"metadata": {"generateName": "a-", "annotations": dict(pod.annotations)}, "spec": spec}
    try:
        await client.create(
            resources.PODS, Object.of({"apiVersion": "v1", "kind": "Pod", **again}), namespace=judge, dry_run=True
        )
    except errors.Forbidden as error:
        if "violates PodSecurity" not in str(error):
            raise
        yield str(error)


def _pod(pod: Object, bounds: Bounds) -> Iterator[str]:
    spec = pod.spec
    yield from (f"spec.{name}" for name in ("hostNetwork", "hostPID", "hostIPC") if spec.get(name))
    for volume in spec.get("volumes") or ():
        yield from _volume(volume, bounds)
    for container in _containers(spec):
        yield from _container(container)
    if spec.get("automountServiceAccountToken") is not False:
        yield "the service account's token of the super cluster is mounted"
    yield from (f"resourceClaim {one['name']}" for one in spec.get("resourceClaims") or ())
    for selector in _namespace_selectors(spec):
        if selector.get("matchLabels", {}).get("hansa.dev/upper") != bounds.upper_id:
            yield f"namespaceSelector {selector}"
    yield from _scheduling(spec, bounds)


def _volume(volume: Spec, bounds: Bounds) -> Iterator[str]:
    yield from (f"volume type {kind}" for kind in volume.keys() - {"name"} - VOLUMES)
    for source in (volume.get("projected") or {}).get("sources") or ():
        yield from (f"projected {kind}" for kind in source.keys() - PROJECTED)
    template = (volume.get("ephemeral") or {}).get("volumeClaimTemplate") or {}
    yield from _claim_spec(template.get("spec") or {}, bounds)


def _scheduling(spec: Spec, bounds: Bounds) -> Iterator[str]:
    if spec.get("schedulerName") not in ("default-scheduler", None):
        yield f"scheduler {spec['schedulerName']}"
    for name in ("runtimeClassName", "priorityClassName"):
        if spec.get(name) and spec[name] not in bounds.classes:
            yield f"{name} {spec[name]}"
    if spec.get("priority", 0) > 0:
        yield f"priority {spec['priority']}"
    for one in spec.get("tolerations") or ():
        key = one.get("key", "")
        if not key or key.startswith(CONTROL_PLANE):
            yield f"toleration {one}"
    required = (spec.get("affinity") or {}).get("nodeAffinity", {}).get(_REQUIRED) or {}
    expressions = [one for term in required.get("nodeSelectorTerms", ()) for one in term.get("matchExpressions", ())]
    named = {one["key"] for one in expressions if one["operator"] not in _NEGATIVE}
    yield from (f"node label {key}" for key in named | {*(spec.get("nodeSelector") or ())} if key in ROLES)


def _container(container: Spec) -> Iterator[str]:
    yield from (f"hostPort {one['hostPort']}" for one in container.get("ports") or () if one.get("hostPort"))
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        yield from _handler(probe, container.get(probe) or {})
    for hook, handler in (container.get("lifecycle") or {}).items():
        if isinstance(handler, Mapping):
            yield from _handler(hook, handler)


def _handler(name: str, handler: Spec) -> Iterator[str]:
    yield from (f"{name}.{one}.host" for one in ("httpGet", "tcpSocket") if (handler.get(one) or {}).get("host"))


def _containers(spec: Spec) -> Iterator[Spec]:
    for name in ("containers", "initContainers", "ephemeralContainers"):
        yield from spec.get(name) or ()


def _namespace_selectors(spec: Spec) -> Iterator[Spec]:
    affinity = spec.get("affinity") or {}
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind) or {}
        preferred = (
            one["podAffinityTerm"] for one in terms.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        )
        for term in (*(terms.get("requiredDuringSchedulingIgnoredDuringExecution") or ()), *preferred):
            if (selector := term.get("namespaceSelector")) is not None:
                yield selector


def _service(service: Object, bounds: Bounds) -> Iterator[str]:
    spec = service.spec
    yield from (f"externalIP {one}" for one in spec.get("externalIPs") or ())
    if spec.get("externalName"):
        name = spec["externalName"].rstrip(".")
        if ".svc" in name or name.endswith("cluster.local") or _is_foreign(name, bounds):
            yield f"externalName {name}"


def _endpoint_slice(obj: Object, bounds: Bounds) -> Iterator[str]:
    addresses = (one for endpoint in obj.get("endpoints") or () for one in endpoint.get("addresses") or ())
    yield from (f"address {one}" for one in addresses if _is_foreign(one, bounds))


def _endpoints(obj: Object, bounds: Bounds) -> Iterator[str]:
    for subset in obj.get("subsets") or ():
        both = (*(subset.get("addresses") or ()), *(subset.get("notReadyAddresses") or ()))
        yield from (f"address {one['ip']}" for one in both if _is_foreign(one["ip"], bounds))


def _is_foreign(text: str, bounds: Bounds) -> bool:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return text in bounds.foreign_addresses or address.is_loopback or address.is_link_local


def _ingress(obj: Object, bounds: Bounds) -> Iterator[str]:
    # Without a class, the default one of the super cluster serves it.
    if (name := obj.spec.get("ingressClassName")) not in bounds.classes:
        yield f"ingressClassName {name}"


def _claim(obj: Object, bounds: Bounds) -> Iterator[str]:
    yield from _claim_spec(obj.spec, bounds)


def _claim_spec(spec: Spec, bounds: Bounds) -> Iterator[str]:
    if (name := spec.get("storageClassName")) and name not in bounds.classes:
        yield f"storageClassName {name}"
    if bounds.static_volume and spec.get("volumeName") == bounds.static_volume:
        yield f"volumeName {spec['volumeName']}"


def _policy(obj: Object, bounds: Bounds) -> Iterator[str]:
    for direction, side in (("ingress", "from"), ("egress", "to")):
        for rule in obj.spec.get(direction) or ():
            for peer in rule.get(side) or ():
                selector = peer.get("namespaceSelector")
                labels = (selector or {}).get("matchLabels", {})
                # Its own namespaces, or the one of its control plane.
                is_own = labels.get("hansa.dev/upper") == bounds.upper_id
                if selector is not None and not is_own and labels.get("kubernetes.io/metadata.name") != bounds.prefix:
                    yield f"namespaceSelector {selector}"


def _secret(obj: Object, _bounds: Bounds) -> Iterator[str]:
    if obj.get("type") == "kubernetes.io/service-account-token":
        yield "a service account token: the super cluster would fill it in"


def _plain(_obj: Object, _bounds: Bounds) -> Iterator[str]:
    return iter(())


_CHECKS: Final = {
    resources.NAMESPACES: _plain,
    resources.PODS: _pod,
    resources.SERVICES: _service,
    resources.ENDPOINTS: _endpoints,
    resources.ENDPOINT_SLICES: _endpoint_slice,
    resources.PERSISTENT_VOLUME_CLAIMS: _claim,
    resources.INGRESSES: _ingress,
    resources.NETWORK_POLICIES: _policy,
    resources.CONFIG_MAPS: _plain,
    resources.SECRETS: _secret,
}
