"""The kubeconfig of a tenant for use outside of the super cluster, with the external address of its API server.

`kubectl vc` writes it. The server's certificate is always verified, by `tls-server-name` if it lacks the address.
"""

import asyncio
import base64
import contextlib
import copy
from typing import Any

import yaml

from hansa.kube import errors, resources, watching
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.runtime.errors import HansaError
from hansa.tenancy import api
from hansa.tenancy.operator import service_address
from hansa.tenancy.syncing import credentials

SERVICE = "apiserver-svc"


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
        entry["cluster"] |= {"server": server, "tls-server-name": service_address.SERVER_NAME}
    return result


def server_of(config: dict[str, Any]) -> str:
    """The server URL in a tenant's kubeconfig."""
    return str(config["clusters"][0]["cluster"]["server"])


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
            return service_address.url(node_address(nodes), port["nodePort"])
        case "LoadBalancer":
            return service_address.url(await _load_balancer(client, service, deadline=deadline), port["port"])
        case "ClusterIP" if spec.get("clusterIP") not in (None, "", "None"):
            return service_address.url(spec["clusterIP"], port["port"])
        case other:
            raise HansaError(f"Service {service.key} of the API server has type {other} and no clusterIP")


def node_address(nodes: list[Object]) -> str:
    """The address of a Ready node."""
    if address := service_address.node_address(nodes):
        return address
    raise HansaError("no node of the super cluster is Ready with an InternalIP, which the API server's NodePort needs")


async def _load_balancer(client: Client, service: Object, *, deadline: float) -> str:
    fields = f"metadata.name={service.name}"
    changes = watching.watch(client, resources.SERVICES, namespace=service.namespace, fields=fields)
    try:
        async with asyncio.timeout(deadline), contextlib.aclosing(changes):
            async for change in changes:
                match change:
                    case watching.Added(obj) | watching.Modified(obj) if address := service_address.ingress_address(
                        obj
                    ):
                        return address
                    case watching.Interrupted(errors.Denied() as error):
                        raise error
    except TimeoutError:
        pass
    raise HansaError(f"Service {service.key} has no load balancer address after {deadline:g} s")
