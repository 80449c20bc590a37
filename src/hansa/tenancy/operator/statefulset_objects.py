"""StatefulSets, Services and NetworkPolicies of a tenant's control plane, from its ClusterVersion.

Pure. The provisioner `native` applies them. Added are names, labels, owner annotations, hashes of certificates, the
service CIDR and etcd's members.
"""

import copy
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hansa.kube.objects import Object
from hansa.kube.resources import CONFIG_MAPS, NETWORK_POLICIES, SERVICES, STATEFUL_SETS
from hansa.model import keys
from hansa.tenancy.api import BadVirtualCluster, Bundle
from hansa.tenancy.operator import etcd_storage, pki
from hansa.tenancy.operator.etcd_storage import EtcdStorage
from hansa.tenancy.operator.pki import Pki
from hansa.tenancy.operator.provisioning import DesiredControlPlane

ETCD, APISERVER, CONTROLLER_MANAGER = "etcd", "apiserver", "controller-manager"
PEER_PORT = 2380
SERVICE_RANGE = "--service-cluster-ip-range"
# The CA of vn-agents: a ConfigMap of the root namespace, which the API server's pods mount.
VN_AGENT_CA, VN_AGENT_CA_KEY, VN_AGENT_CA_PATH = "vn-agent-ca", "ca.crt", "/etc/kubernetes/pki/vn-agent"
# A change of these Secrets restarts the pods. etcd and its client read certificates at every handshake, but read the
# authority once. It changes only if its Secret was deleted.
HASHED = {
    ETCD: (pki.ETCD_ROOT,),
    APISERVER: (pki.ROOT, pki.ETCD_ROOT, pki.APISERVER, pki.FRONT_PROXY, pki.SERVICE_ACCOUNTS),
    CONTROLLER_MANAGER: (pki.ROOT, pki.SERVICE_ACCOUNTS, pki.CONTROLLER_MANAGER),
}


@dataclass(frozen=True, slots=True)
class Component:
    """One component of a control plane."""

    name: str
    statefulset: Object
    service: Object | None


def bundles(desired: DesiredControlPlane) -> dict[str, Bundle]:
    """The components of a ClusterVersion in the order of their start."""
    spec = desired.version.spec
    found = {ETCD: spec.etcd, APISERVER: spec.api_server}
    return found if spec.controller_manager is None else {**found, CONTROLLER_MANAGER: spec.controller_manager}


def components(
    desired: DesiredControlPlane,
    keys_of: Pki,
    *,
    vn_agent_ca: bytes = b"",
    storage: EtcdStorage = etcd_storage.DEFAULT,
    live_etcd: Object | None = None,
) -> list[Component]:
    """The objects of a control plane, by component, in the order of their start.

    `storage` is that of a new etcd; `live_etcd` is its StatefulSet, if it exists already.
    """
    made = [_component(name, bundle, desired, keys_of, vn_agent_ca) for name, bundle in bundles(desired).items()]
    etcd = made[0].statefulset
    spec = storage.apply(etcd.spec, live_etcd)
    if spec.get("volumeClaimTemplates"):  # a pod without one would lose its data
        spec["template"]["metadata"]["annotations"] |= hashes(ETCD, keys_of)
    return [replace(made[0], statefulset=etcd.with_fields(spec=spec)), *made[1:]]


def etcd_name(desired: DesiredControlPlane) -> str:
    """The name of the StatefulSet of etcd."""
    return str((desired.version.spec.etcd.statefulset.get("metadata") or {}).get("name") or ETCD)


def vn_agent_config(desired: DesiredControlPlane, vn_agent_ca: bytes) -> Object:
    """The ConfigMap with the CA of vn-agents."""
    manifest = {"data": {VN_AGENT_CA_KEY: vn_agent_ca.decode()}}
    return _placed(manifest, CONFIG_MAPS.api_version, CONFIG_MAPS.kind, desired, name=VN_AGENT_CA)


def service(name: str, desired: DesiredControlPlane) -> Object | None:
    """The Service of one component, if it has one."""
    manifest = bundles(desired)[name].service
    if manifest is None:
        return None
    return _placed(manifest, SERVICES.api_version, SERVICES.kind, desired, name=name)


def network_policies(desired: DesiredControlPlane) -> list[Object]:
    """Who reaches the pods: etcd is for the API server and its own members, no client may call controllers.

    Metrics and health of etcd have no authentication. The kubelet's probes need no rule.
    """
    selectors = {name: bundle.statefulset["spec"].get("selector") or {} for name, bundle in bundles(desired).items()}
    clients = {ETCD: (ETCD, APISERVER), CONTROLLER_MANAGER: ()}
    return [
        _placed(
            {
                "spec": {
                    "podSelector": selector,
                    "policyTypes": ["Ingress"],
                    "ingress": [{"from": [{"podSelector": selectors[one]}]} for one in clients[name]],
                }
            },
            NETWORK_POLICIES.api_version,
            NETWORK_POLICIES.kind,
            desired,
            name=name,
        )
        for name, selector in selectors.items()
        if name in clients
    ]


def etcd_names(desired: DesiredControlPlane) -> tuple[str, ...]:
    """The DNS names of etcd and its members."""
    bundle = desired.version.spec.etcd
    hosts = [_etcd_service(bundle), *(f"{member}.{_etcd_service(bundle)}" for member in _members(bundle))]
    return tuple(f"{host}{suffix}" for host in hosts for suffix in ("", f".{desired.root}", f".{desired.root}.svc"))


def _component(name: str, bundle: Bundle, desired: DesiredControlPlane, keys_of: Pki, vn_agent_ca: bytes) -> Component:
    manifest = copy.deepcopy(bundle.statefulset)
    template = manifest["spec"]["template"]
    metadata = template.setdefault("metadata", {})
    metadata["labels"] = {**(metadata.get("labels") or {}), keys.TENANT_CLUSTER: desired.root}
    metadata["annotations"] = dict(metadata.get("annotations") or {})
    container = template["spec"]["containers"][0]
    if name == ETCD:
        peers = (f"{one}=https://{one}.{_etcd_service(bundle)}:{PEER_PORT}" for one in _members(bundle))
        container["args"] = [*(container.get("args") or ()), f"--initial-cluster={','.join(peers)}"]
    else:
        metadata["annotations"] |= hashes(name, keys_of)
        _set_flag(container, SERVICE_RANGE, str(desired.services))
    if name == APISERVER and vn_agent_ca:
        _verify_vn_agents(template, vn_agent_ca)
    placed = _placed(manifest, STATEFUL_SETS.api_version, STATEFUL_SETS.kind, desired, name=name)
    return Component(name, placed, service(name, desired))


def _verify_vn_agents(template: dict[str, Any], vn_agent_ca: bytes) -> None:
    """Have the API server's pods verify vn-agents. It reads the CA once, so another one restarts them."""
    template["metadata"]["annotations"] |= {f"{keys.TENANCY}/{VN_AGENT_CA}-hash": _hash((vn_agent_ca,))}
    spec = template["spec"]
    spec["volumes"] = [*(spec.get("volumes") or ()), {"name": VN_AGENT_CA, "configMap": {"name": VN_AGENT_CA}}]
    container = spec["containers"][0]
    mount = {"name": VN_AGENT_CA, "mountPath": VN_AGENT_CA_PATH, "readOnly": True}
    container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
    _set_flag(container, "--kubelet-certificate-authority", f"{VN_AGENT_CA_PATH}/{VN_AGENT_CA_KEY}")


def hashes(component: str, keys_of: Pki) -> dict[str, str]:
    """Annotations of a pod template with hashes of the Secrets that its pods read."""
    return {f"{keys.TENANCY}/{name}-hash": _hash(_content(keys_of, name)) for name in HASHED[component]}


def _content(keys_of: Pki, secret: str) -> Iterable[bytes]:
    if secret in pki.KUBECONFIGS:
        return (keys_of.kubeconfigs[secret],)
    return (keys_of[secret].certificate, keys_of[secret].key)


def _hash(parts: Iterable[bytes]) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _placed(
    manifest: dict[str, Any], api_version: str, kind: str, desired: DesiredControlPlane, *, name: str
) -> Object:
    """The object in the root namespace, with annotations that name its VirtualCluster."""
    obj = Object.of({**manifest, "apiVersion": api_version, "kind": kind})
    return obj.with_metadata(
        name=obj.name or name,
        namespace=desired.root,
        labels={**obj.labels, keys.TENANT_CLUSTER: desired.root},
        annotations={
            **obj.annotations,
            keys.VC_NAME: desired.vc.name,
            keys.VC_NAMESPACE: desired.vc.namespace,
        },
    )


def _members(bundle: Bundle) -> list[str]:
    return [f"{ETCD}-{number}" for number in range(bundle.statefulset["spec"].get("replicas", 1))]


def _etcd_service(bundle: Bundle) -> str:
    name = ((bundle.service or {}).get("metadata") or {}).get("name") or ""
    if not name:
        raise BadVirtualCluster(
            "spec.etcd.service.metadata.name of the ClusterVersion is empty; set it, etcd's members need its DNS names"
        )
    return str(name)


def _set_flag(container: dict[str, Any], flag: str, value: str) -> None:
    """Set a flag of a container: remove it from command and args, and append it to args."""
    lines = {part: _without(container.get(part) or (), flag) for part in ("command", "args")}
    container |= {part: line for part, line in lines.items() if line}
    container["args"] = [*lines["args"], f"{flag}={value}"]


def _without(line: Sequence[str], flag: str) -> list[str]:
    kept: list[str] = []
    is_value = False
    for word in line:
        if not is_value and word.partition("=")[0] != flag:
            kept.append(word)
        is_value = not is_value and word == flag
    return kept
