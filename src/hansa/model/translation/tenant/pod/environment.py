"""Service variables of containers: those of the tenant's Services and API server, as its own kubelet would set them.

They are in a ConfigMap of the super namespace, so that containers get the values of when they start and pods stay
small. enableServiceLinks is off in the super cluster; the API server's variables that its kubelet adds are overridden.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from hansa.kube import resources
from hansa.kube.objects import NamespacedName, Object
from hansa.model.lookups import Reads
from hansa.model.pair import Key, Link
from hansa.model.references import Missing, Reference
from hansa.model.translation.common.pod import access
from hansa.model.translation.common.pod.spec import Spec, with_containers
from hansa.model.translation.tenant import tenant_settings

API_SERVICE: Final = NamespacedName("default", "kubernetes")
# The names of the ConfigMaps. Pods with enableServiceLinks=false use the second: they need the API server's variables.
SERVICES_CONFIG_MAP, API_CONFIG_MAP = CONFIG_MAPS = ("services.hansa.dev", "kubernetes.hansa.dev")
# Names in the certificate of a tenant's API server. Its address in the super cluster may not be in there.
_API_NAMES: Final = ("kubernetes", "kubernetes.default", "kubernetes.default.svc")


def inject_service_variables(spec: Spec, _pod: Object, _link: Link) -> Spec:
    """Add the ConfigMap to envFrom of all containers, as the first source: their own variables take precedence."""
    source = {"configMapRef": {"name": _config_map_name(is_linked=spec.get("enableServiceLinks"))}}
    changed = with_containers(spec, lambda one: one | {"envFrom": [source, *(one.get("envFrom") or ())]})
    return changed | {"enableServiceLinks": False}


def config_map_reference(pod: Object) -> Reference:
    """The ConfigMap that a pod reads. It doesn't exist in the tenant: an empty one is synced and filled on the way."""
    is_linked = pod.decode("spec", _Links).enable_service_links
    return Reference(
        resources.CONFIG_MAPS, pod.namespace, _config_map_name(is_linked=is_linked), missing=Missing.PLACEHOLDER
    )


def fill_config_map(config_map: Object, link: Link) -> Object:
    """Fill in the variables of the API server, and of the Services of its namespace if the ConfigMap is for those."""
    if config_map.name not in CONFIG_MAPS:
        return config_map
    variables: dict[str, str] = {}
    if config_map.name == SERVICES_CONFIG_MAP:
        for service in sorted(link.lookups.uppers(resources.SERVICES, config_map.namespace), key=lambda one: one.name):
            variables |= service_variables(service, super_cluster_ip(service, link))
    return config_map.with_fields(data=variables | _api_variables(link) or None, binaryData=None, immutable=None)


def config_map_sources(key: Key) -> Iterator[Reference]:
    """The Services that a ConfigMap is computed from; it is reconciled when they change."""
    if key.name in CONFIG_MAPS:
        yield Reference(resources.SERVICES, *API_SERVICE)
    if key.name == SERVICES_CONFIG_MAP:
        yield Reference(resources.SERVICES, key.namespace, "")


def _config_map_reads(config_map: Object) -> Iterator[Reference]:
    yield from config_map_sources(Key("", resources.CONFIG_MAPS, *config_map.key))


CONFIG_MAP_READS: Final = Reads(
    frozenset({resources.SERVICES}), _config_map_reads, lists=frozenset({resources.SERVICES})
)


def alias_api_server(spec: Spec, _pod: Object, link: Link) -> Spec:
    """Add hostAliases for the tenant's API server if its address in the super cluster differs from the tenant's."""
    service = link.lookups.upper(resources.SERVICES, API_SERVICE)
    ip = "" if service is None else super_cluster_ip(service, link)
    if service is None or not ip or ip == service.spec.get("clusterIP"):
        return spec
    return spec | {"hostAliases": [*(spec.get("hostAliases") or ()), {"ip": ip, "hostnames": list(_API_NAMES)}]}


def super_cluster_ip(service: Object, link: Link) -> str:
    """The cluster IP of a tenant's Service in the super cluster; empty if it is headless or has none yet."""
    copy = link.lookups.lower(resources.SERVICES, service.key)
    found: str = (copy or service).spec.get("clusterIP") or ""
    if found == "None" or (copy is None and not tenant_settings.keeps_service_ip(found, tenant_settings.of(link))):
        return ""
    return found


def service_variables(service: Object, host: str) -> dict[str, str]:
    """The variables of one Service, named as kubelets name them."""
    ports = service.spec.get("ports") or ()
    if not host or not ports:
        return {}
    name = _variable_name(service.name)
    found = {f"{name}_SERVICE_HOST": host, f"{name}_SERVICE_PORT": str(ports[0]["port"])}
    found |= {
        f"{name}_SERVICE_PORT_{_variable_name(one['name'])}": str(one["port"]) for one in ports if one.get("name")
    }
    urls = [_url(one, host) for one in ports]
    found[f"{name}_PORT"] = urls[0]
    for port, url in zip(ports, urls, strict=True):
        protocol = port.get("protocol") or "TCP"
        prefix = f"{name}_PORT_{port['port']}_{protocol}"
        found |= {prefix: url, f"{prefix}_PROTO": protocol.lower(), f"{prefix}_PORT": str(port["port"])}
        found[f"{prefix}_ADDR"] = host
    return found


class _Links(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    enable_service_links: bool | None = None


def _config_map_name(*, is_linked: bool | None) -> str:
    return API_CONFIG_MAP if is_linked is False else SERVICES_CONFIG_MAP


def _api_variables(link: Link) -> dict[str, str]:
    tenant, service = tenant_settings.of(link), link.lookups.upper(resources.SERVICES, API_SERVICE)
    ip = "" if service is None else super_cluster_ip(service, link)
    if service is None or not ip:
        return access.api_variables(tenant.api_host, tenant.api_port) if tenant.api_host else {}
    variables = service_variables(service, ip)
    if ip != service.spec.get("clusterIP"):
        variables["KUBERNETES_SERVICE_HOST"] = _API_NAMES[0]
    return variables


def _variable_name(name: str) -> str:
    return name.upper().replace("-", "_")


def _url(port: Spec, host: str) -> str:
    return f"{(port.get('protocol') or 'TCP').lower()}://{f'[{host}]' if ':' in host else host}:{port['port']}"
