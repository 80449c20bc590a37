"""What a tenant's control plane is in its root namespace: a ClusterVersion's objects, with what only the tenant has.

Pure: a ClusterVersion, a tenant and its keys in, StatefulSets and Services out.
"""

import copy
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hansa.kube.objects import Object
from hansa.kube.resources import SERVICES, STATEFUL_SETS
from hansa.model import keys
from hansa.tenancy import pki
from hansa.tenancy.api import BadVirtualCluster, Bundle
from hansa.tenancy.pki import Pki
from hansa.tenancy.provisioning import Order

ETCD, APISERVER, CONTROLLER_MANAGER = "etcd", "apiserver", "controller-manager"
PEER_PORT = 2380
SERVICE_RANGE = "--service-cluster-ip-range"
# Pods are made anew when one of these changes. etcd's hold its data, and read certificates at every handshake.
HASHED = {
    ETCD: (),
    APISERVER: (pki.ROOT, pki.APISERVER, pki.FRONT_PROXY, pki.SERVICE_ACCOUNTS),
    CONTROLLER_MANAGER: (pki.ROOT, pki.SERVICE_ACCOUNTS, pki.CONTROLLER_MANAGER),
}


@dataclass(frozen=True, slots=True)
class Component:
    """One part of a control plane."""

    name: str
    statefulset: Object
    service: Object | None


def bundles(order: Order) -> dict[str, Bundle]:
    """The parts of a ClusterVersion in the order in which they start."""
    spec = order.version.spec
    found = {ETCD: spec.etcd, APISERVER: spec.api_server}
    return found if spec.controller_manager is None else {**found, CONTROLLER_MANAGER: spec.controller_manager}


def components(order: Order, keys_of: Pki) -> list[Component]:
    """The parts of a control plane in the order in which they start."""
    return [_component(name, bundle, order, keys_of) for name, bundle in bundles(order).items()]


def service(name: str, order: Order) -> Object | None:
    """The Service of one part."""
    manifest = bundles(order)[name].service
    if manifest is None:
        return None
    return _placed(manifest, SERVICES.api_version, SERVICES.kind, order, name=name)


def etcd_names(order: Order) -> tuple[str, ...]:
    """The names by which members of etcd and the API server find etcd."""
    bundle = order.version.spec.etcd
    hosts = [_etcd_service(bundle), *(f"{member}.{_etcd_service(bundle)}" for member in _members(bundle))]
    return tuple(f"{host}{suffix}" for host in hosts for suffix in ("", f".{order.root}", f".{order.root}.svc"))


def _component(name: str, bundle: Bundle, order: Order, keys_of: Pki) -> Component:
    manifest = copy.deepcopy(bundle.statefulset)
    template = manifest["spec"]["template"]
    metadata = template.setdefault("metadata", {})
    metadata["labels"] = {**(metadata.get("labels") or {}), keys.TENANT_CLUSTER: order.root}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **hashes(name, keys_of)}
    container = template["spec"]["containers"][0]
    if name == ETCD:
        peers = (f"{one}=https://{one}.{_etcd_service(bundle)}:{PEER_PORT}" for one in _members(bundle))
        container["args"] = [*(container.get("args") or ()), f"--initial-cluster={','.join(peers)}"]
    else:
        _set_flag(container, SERVICE_RANGE, str(order.services))
    placed = _placed(manifest, STATEFUL_SETS.api_version, STATEFUL_SETS.kind, order, name=name)
    return Component(name, placed, service(name, order))


def hashes(component: str, keys_of: Pki) -> dict[str, str]:
    """The annotations of a pod template that change with the keys that its pods read."""
    return {f"{keys.TENANCY}/{name}-hash": _hash(_content(keys_of, name)) for name in HASHED[component]}


def _content(keys_of: Pki, secret: str) -> Iterable[bytes]:
    if secret in pki.KUBECONFIGS:
        return (keys_of.kubeconfigs[secret],)
    return (keys_of[secret].certificate, keys_of[secret].key)


def _hash(parts: Iterable[bytes]) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def _placed(manifest: dict[str, Any], api_version: str, kind: str, order: Order, *, name: str) -> Object:
    """The object where it belongs, with the words that lead back to its VirtualCluster."""
    obj = Object.of({**manifest, "apiVersion": api_version, "kind": kind})
    return obj.with_metadata(
        name=obj.name or name,
        namespace=order.root,
        labels={**obj.labels, keys.TENANT_CLUSTER: order.root},
        annotations={
            **obj.annotations,
            keys.VC_NAME: order.vc.name,
            keys.VC_NAMESPACE: order.vc.namespace,
        },
    )


def _members(bundle: Bundle) -> list[str]:
    return [f"{ETCD}-{number}" for number in range(bundle.statefulset["spec"].get("replicas", 1))]


def _etcd_service(bundle: Bundle) -> str:
    name = ((bundle.service or {}).get("metadata") or {}).get("name") or ""
    if not name:
        raise BadVirtualCluster(
            "etcd of the ClusterVersion has no Service with a name, so nobody could find its members"
        )
    return str(name)


def _set_flag(container: dict[str, Any], flag: str, value: str) -> None:
    """Give a flag that value wherever the command line has it, or add it."""
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
