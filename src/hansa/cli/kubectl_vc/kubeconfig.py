"""How a person reaches a tenant's API server: by the kubeconfig of its root namespace, at its Service's address.

Its certificate is always verified: where the address is none of the certificate's, the kubeconfig names one that is.
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
SERVER_NAME = "kubernetes"  # every tenant's API server has a certificate for it


async def kubeconfig(client: Client, vc: api.VirtualCluster, *, deadline: float) -> dict[str, Any]:
    """The administrator's kubeconfig of a tenant, for use outside of the super cluster."""
    config = await _written(client, vc)
    if credentials.secret_of(vc.object) != credentials.SECRET:
        return config  # the user's own cluster
    try:
        service = await client.get(resources.SERVICES, SERVICE, namespace=vc.root)
    except errors.NotFound:
        return config  # local processes: the address is the right one
    return moved(config, await _address(client, service, deadline=deadline))


def moved(config: dict[str, Any], server: str) -> dict[str, Any]:
    """The kubeconfig with another address of the same server."""
    result = copy.deepcopy(config)
    for entry in result["clusters"]:
        entry["cluster"] |= {"server": server, "tls-server-name": SERVER_NAME}
    return result


def server_of(config: dict[str, Any]) -> str:
    """The address in a tenant's kubeconfig."""
    return str(config["clusters"][0]["cluster"]["server"])


def node_address(nodes: list[Object]) -> str:
    """The InternalIP of the first node, by name, that is Ready."""
    for node in sorted(nodes, key=lambda one: one.name):
        status = node.status
        is_ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", ()))
        addresses = [a["address"] for a in status.get("addresses", ()) if a["type"] == "InternalIP"]
        if is_ready and addresses:
            return str(addresses[0])
    raise HansaError("the API server has a NodePort, but no node of the super cluster is Ready and has an InternalIP")


def ingress_address(service: Object) -> str:
    """The address that a load balancer gave a Service; empty if there is none yet."""
    ingress = (service.status.get("loadBalancer") or {}).get("ingress") or [{}]
    return str(ingress[0].get("ip") or ingress[0].get("hostname") or "")


async def _written(client: Client, vc: api.VirtualCluster) -> dict[str, Any]:
    name = credentials.secret_of(vc.object)
    secret = None
    with contextlib.suppress(errors.NotFound):
        secret = await client.get(resources.SECRETS, name, namespace=vc.root) if name else None
    given = credentials.given(vc.object, secret)
    if given is None:
        raise HansaError(f"VirtualCluster {vc.key} has no kubeconfig yet: secret {vc.root}/{name} does not hold one")
    given.login()  # what nobody can use is told here
    config: dict[str, Any] = yaml.safe_load(base64.b64decode(given.encoded))
    return config


async def _address(client: Client, service: Object, *, deadline: float) -> str:
    spec = service.spec
    port = spec["ports"][0]
    match spec.get("type"):
        case "NodePort":
            nodes = [node async for page in client.pages(resources.NODES) for node in page.items]
            return _url(node_address(nodes), port["nodePort"])
        case "LoadBalancer":
            return _url(await _balanced(client, service, deadline=deadline), port["port"])
        case "ClusterIP" if spec.get("clusterIP") not in (None, "", "None"):
            return _url(spec["clusterIP"], port["port"])
        case other:
            raise HansaError(f"Service {service.key} of the API server has the type {other} and no address of its own")


async def _balanced(client: Client, service: Object, *, deadline: float) -> str:
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
    raise HansaError(f"no load balancer gave Service {service.key} an address in {deadline:g} s")


def _url(host: str, port: int) -> str:
    with contextlib.suppress(ValueError):
        host = f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    return f"https://{host}:{port}"
