"""The environment that a kubelet of the tenant's own would give: its Services, and where its API server is.

The super cluster's kubelet is told to add none of its own; what it adds of its API server is overridden.
"""

from typing import Final

from hansa.kube import resources
from hansa.kube.objects import Key as Place
from hansa.kube.objects import Object
from hansa.model.pair import Link
from hansa.model.translation.pod import access
from hansa.model.translation.pod.spec import Spec, with_variables
from hansa.model.translation.tenant import settings

API: Final = Place("default", "kubernetes")
# The certificate of a tenant's API server is good for these, if not for an address of the super cluster.
_API_NAMES: Final = ("kubernetes", "kubernetes.default", "kubernetes.default.svc")


def tell_services(spec: Spec, pod: Object, link: Link) -> Spec:
    """The variables of the Services in its namespace, unless the pod wants none, and of its API server in any case."""
    told: dict[str, str] = {}
    if spec.get("enableServiceLinks") is not False:
        for service in sorted(link.around.uppers(resources.SERVICES, pod.namespace), key=lambda one: one.name):
            told |= of_service(service, address(service, link))
    return with_variables(spec, told | _of_api(link)) | {"enableServiceLinks": False}


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
