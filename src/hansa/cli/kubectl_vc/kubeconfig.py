"""The kubeconfig of a tenant for use outside of the super cluster, with the external address of its API server.

`kubectl vc` writes it. The server's certificate is always verified, by `tls-server-name` if it lacks the address.
"""

import asyncio
import base64
import contextlib
import copy
import ipaddress
from typing import Any

import yaml

from hansa.kube import errors, resources, watching
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.runtime.errors import HansaError
from hansa.tenancy import api
from hansa.tenancy.syncing import credentials

SERVICE = "apiserver-svc"
SERVER_NAME = "kubernetes"  # a SAN of every tenant's API server


async def kubeconfig(client: Client, vc: api.VirtualCluster, *, deadline: float) -> dict[str, Any]:
    """The administrator's kubeconfig of a tenant, for use outside of the super cluster."""
    config = await _original(client, vc)
    if credentials.secret_of(vc.object) != credentials.SECRET:
        return config  # the user's own cluster
    try:
        service = await client.get(resources.SERVICES, SERVICE, namespace=vc.root)
    except errors.NotFound:
        return config  # a control plane of processes: its address is external already
    return with_server(config, await _address(client, service, deadline=deadline))


def with_server(config: dict[str, Any], server: str) -> dict[str, Any]:
    """The kubeconfig with another URL of the same server."""
    result = copy.deepcopy(config)
    for entry in result["clusters"]:
        entry["cluster"] |= {"server": server, "tls-server-name": SERVER_NAME}
    return result


def server_of(config: dict[str, Any]) -> str:
    """The server URL in a tenant's kubeconfig."""
    return str(config["clusters"][0]["cluster"]["server"])


def node_address(nodes: list[Object]) -> str:
    """The InternalIP of the first Ready node by name."""
    for node in sorted(nodes, key=lambda one: one.name):
        status = node.status
        is_ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", ()))
        addresses = [a["address"] for a in status.get("addresses", ()) if a["type"] == "InternalIP"]
        if is_ready and addresses:
            return str(addresses[0])
    raise HansaError("no node of the super cluster is Ready with an InternalIP, which the API server's NodePort needs")


def ingress_address(service: Object) -> str:
    """The load balancer's address in the status of a Service; empty if it is not set yet."""
    ingress = (service.status.get("loadBalancer") or {}).get("ingress") or [{}]
    return str(ingress[0].get("ip") or ingress[0].get("hostname") or "")


async def _original(client: Client, vc: api.VirtualCluster) -> dict[str, Any]:
    name = credentials.secret_of(vc.object)
    secret = None
    with contextlib.suppress(errors.NotFound):
        secret = await client.get(resources.SECRETS, name, namespace=vc.root) if name else None
    found = credentials.find(vc.object, secret)
    if found is None:
        raise HansaError(f"VirtualCluster {vc.key} has no kubeconfig yet: not found in Secret {vc.root}/{name}")
    found.login()  # raises an error if it is invalid
    config: dict[str, Any] = yaml.safe_load(base64.b64decode(found.encoded))
    return config


async def _address(client: Client, service: Object, *, deadline: float) -> str:
    spec = service.spec
    port = spec["ports"][0]
    match spec.get("type"):
        case "NodePort":
            nodes = [node async for page in client.pages(resources.NODES) for node in page.items]
            return _url(node_address(nodes), port["nodePort"])
        case "LoadBalancer":
            return _url(await _load_balancer(client, service, deadline=deadline), port["port"])
        case "ClusterIP" if spec.get("clusterIP") not in (None, "", "None"):
            return _url(spec["clusterIP"], port["port"])
        case other:
            raise HansaError(f"Service {service.key} of the API server has type {other} and no clusterIP")


async def _load_balancer(client: Client, service: Object, *, deadline: float) -> str:
    fields = f"metadata.name={service.name}"
    changes = watching.watch(client, resources.SERVICES, namespace=service.namespace, fields=fields)
    try:
        async with asyncio.timeout(deadline), contextlib.aclosing(changes):
            async for change in changes:
                match change:
                    case watching.Added(obj) | watching.Modified(obj) if address := ingress_address(obj):
                        return address
                    case watching.Interrupted(errors.Denied() as error):
                        raise error
    except TimeoutError:
        pass
    raise HansaError(f"Service {service.key} has no load balancer address after {deadline:g} s")


def _url(host: str, port: int) -> str:
    with contextlib.suppress(ValueError):
        host = f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    return f"https://{host}:{port}"
