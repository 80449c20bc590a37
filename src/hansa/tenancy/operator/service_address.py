"""The address under which clients reach the API server of a tenant that runs as a StatefulSet.

Pods of the cluster with the StatefulSets use the Service. From outside, a node or a load balancer has to lead there.
"""

import contextlib
import ipaddress
from collections.abc import Iterable
from enum import StrEnum

from hansa.kube import resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.tenancy.api import BadVirtualCluster

SERVER_NAME = "kubernetes"  # a SAN of every tenant's API server


class Access(StrEnum):
    """Values of --kubeconfig-address."""

    SERVICE = "service"
    NODE_PORT = "nodePort"
    LOAD_BALANCER = "loadBalancer"


async def find(client: Client, service: Object, access: Access) -> str | None:
    """The URL of the API server; None if a load balancer has no address yet."""
    port, kind = service.spec["ports"][0], service.spec.get("type")
    match access:
        case Access.NODE_PORT if port.get("nodePort"):
            nodes = [node async for page in client.pages(resources.NODES) for node in page.items]
            address = node_address(nodes)
            if not address:
                raise BadVirtualCluster(f"no node is Ready with an InternalIP, which Service {service.name} needs")
            return url(address, port["nodePort"])
        case Access.LOAD_BALANCER if kind == "LoadBalancer":
            address = ingress_address(service)
            return url(address, port["port"]) if address else None
        case Access.SERVICE:
            return url(service.spec["clusterIP"], port["port"])
    wanted = "LoadBalancer" if access is Access.LOAD_BALANCER else "NodePort"
    raise BadVirtualCluster(
        f"Service {service.name} of the ClusterVersion has type {kind}; --kubeconfig-address={access} needs {wanted}"
    )


def node_address(nodes: Iterable[Object]) -> str:
    """The InternalIP of the first Ready node by name; empty if there is none."""
    for node in sorted(nodes, key=lambda one: one.name):
        status = node.status
        is_ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", ()))
        addresses = [a["address"] for a in status.get("addresses", ()) if a["type"] == "InternalIP"]
        if is_ready and addresses:
            return str(addresses[0])
    return ""


def ingress_address(service: Object) -> str:
    """The load balancer's address in the status of a Service; empty if it is not set yet."""
    ingress = (service.status.get("loadBalancer") or {}).get("ingress") or [{}]
    return str(ingress[0].get("ip") or ingress[0].get("hostname") or "")


def url(host: str, port: int) -> str:
    """The URL of a server."""
    with contextlib.suppress(ValueError):
        host = f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    return f"https://{host}:{port}"
