"""The environment that a kubelet of the tenant's own would give: its Services, and where its API server is.

It is in a ConfigMap of the pod's namespace below, so that containers find what is so when they start, and pods stay
small. The super cluster's kubelet is told to add none of its own; what it adds of its API server is overridden.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from hansa.kube import resources
from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.model.pair import Key, Link
from hansa.model.references import Missing, Reference
from hansa.model.translation.pod import access
from hansa.model.translation.pod.spec import Spec, with_containers
from hansa.model.translation.tenant import settings

API: Final = Place("default", "kubernetes")
# The names of the ConfigMaps: a pod that wants no variables of Services has those of its API server all the same.
OF_SERVICES, OF_API = TABLES = ("services.hansa.dev", "kubernetes.hansa.dev")
# The certificate of a tenant's API server is good for these, if not for an address of the super cluster.
_API_NAMES: Final = ("kubernetes", "kubernetes.default", "kubernetes.default.svc")


def tell_services(spec: Spec, _pod: Object, _link: Link) -> Spec:
    """Let all containers read the variables of Services; whatever they have themselves under those names wins."""
    told = {"configMapRef": {"name": _table(is_linked=spec.get("enableServiceLinks"))}}
    changed = with_containers(spec, lambda one: one | {"envFrom": [told, *(one.get("envFrom") or ())]})
    return changed | {"enableServiceLinks": False}


def table_of(pod: Object) -> Reference:
    """The ConfigMap that a pod reads. Nobody has one of that name above: one that is empty goes down, and is filled."""
    is_linked = pod.decode("spec", _Links).enable_service_links
    return Reference(resources.CONFIG_MAPS, pod.namespace, _table(is_linked=is_linked), missing=Missing.KEPT_FREE)


def fill_table(config_map: Object, link: Link) -> Object:
    """The variables of the Services in its namespace, where they are wanted, and of the API server in any case."""
    if config_map.name not in TABLES:
        return config_map
    told: dict[str, str] = {}
    if config_map.name == OF_SERVICES:
        for service in sorted(link.around.uppers(resources.SERVICES, config_map.namespace), key=lambda one: one.name):
            told |= of_service(service, address(service, link))
    return config_map.with_fields(data=told | _of_api(link) or None, binaryData=None, immutable=None)


def made_of(key: Key) -> Iterator[Reference]:
    """What these ConfigMaps are made of."""
    if key.name in TABLES:
        yield Reference(resources.SERVICES, *API)
    if key.name == OF_SERVICES:
        yield Reference(resources.SERVICES, key.namespace, "")


def name_api(spec: Spec, _pod: Object, link: Link) -> Spec:
    """Let the names of the tenant's API server lead to it where its address below is another one."""
    service = link.around.upper(resources.SERVICES, API)
    below = "" if service is None else address(service, link)
    if service is None or not below or below == service.spec.get("clusterIP"):
        return spec
    return spec | {"hostAliases": [*(spec.get("hostAliases") or ()), {"ip": below, "hostnames": list(_API_NAMES)}]}


def address(service: Object, link: Link) -> str:
    """The address of a tenant's Service in the super cluster; empty if it has none, or none yet."""
    copy = link.around.lower(resources.SERVICES, service.key)
    if copy is None and not settings.of(link).keeps_service_ips:
        return ""
    found: str = (copy or service).spec.get("clusterIP") or ""
    return "" if found == "None" else found


def of_service(service: Object, host: str) -> dict[str, str]:
    """The variables of one Service, as kubelets name them."""
    ports = service.spec.get("ports") or ()
    if not host or not ports:
        return {}
    name = _upper(service.name)
    told = {f"{name}_SERVICE_HOST": host, f"{name}_SERVICE_PORT": str(ports[0]["port"])}
    told |= {f"{name}_SERVICE_PORT_{_upper(one['name'])}": str(one["port"]) for one in ports if one.get("name")}
    urls = [_url(one, host) for one in ports]
    told[f"{name}_PORT"] = urls[0]
    for port, url in zip(ports, urls, strict=True):
        protocol = port.get("protocol") or "TCP"
        prefix = f"{name}_PORT_{port['port']}_{protocol}"
        told |= {prefix: url, f"{prefix}_PROTO": protocol.lower(), f"{prefix}_PORT": str(port["port"])}
        told[f"{prefix}_ADDR"] = host
    return told


class _Links(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    enable_service_links: bool | None = None


def _table(*, is_linked: bool | None) -> str:
    return OF_API if is_linked is False else OF_SERVICES


def _of_api(link: Link) -> dict[str, str]:
    tenant, service = settings.of(link), link.around.upper(resources.SERVICES, API)
    below = "" if service is None else address(service, link)
    if service is None or not below:
        return access.api_variables(tenant.api_host, tenant.api_port) if tenant.api_host else {}
    told = of_service(service, below)
    if below != service.spec.get("clusterIP"):
        told["KUBERNETES_SERVICE_HOST"] = _API_NAMES[0]
    return told


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")


def _url(port: Spec, host: str) -> str:
    return f"{(port.get('protocol') or 'TCP').lower()}://{f'[{host}]' if ':' in host else host}:{port['port']}"
