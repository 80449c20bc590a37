"""Steps that give a lower pod access to the upper API server (token, CA, address) and none to the lower one."""

from collections.abc import Callable
from typing import Final

from hansa.kube import resources
from hansa.kube.objects import Object
from hansa.model.pair import Link
from hansa.model.references import DEFAULT_ACCOUNT, DEFAULT_LIFETIME, Token
from hansa.model.translation.common import link_settings, names
from hansa.model.translation.common.pod.spec import Spec, with_containers, with_variables, with_volumes

_HOST: Final = "KUBERNETES_SERVICE_HOST"
_PORTS: Final = ("KUBERNETES_SERVICE_PORT", "KUBERNETES_SERVICE_PORT_HTTPS")


def mount_upper_tokens(spec: Spec, pod: Object, link: Link) -> Spec:
    """Mount tokens of the upper API server from Secrets, and no token of the lower cluster."""
    account = spec.get("serviceAccountName") or DEFAULT_ACCOUNT

    def source(one: Spec) -> Spec:
        projection = one.get("serviceAccountToken")
        if projection is None:
            return one
        seconds = projection.get("expirationSeconds") or DEFAULT_LIFETIME
        token = Token(pod.namespace, account, projection.get("audience") or "", seconds)
        item = {"key": names.TOKEN_KEY, "path": projection["path"]}
        return {"secret": {"name": names.token_secret(token, upper_id=link.upper_id), "items": [item]}}

    return _with_sources(spec, source) | {"automountServiceAccountToken": False}


def rename_root_ca(spec: Spec, _pod: Object, link: Link) -> Spec:
    """Refer to the copy of the upper cluster's CA by its lower name."""
    below = names.lower_name(resources.CONFIG_MAPS, names.ROOT_CA, upper_id=link.upper_id)

    def renamed(holder: Spec, field: str) -> Spec:
        reference = holder.get(field) or {}
        return holder | {field: reference | {"name": below}} if reference.get("name") == names.ROOT_CA else holder

    def variable(one: Spec) -> Spec:
        return one | {"valueFrom": renamed(one["valueFrom"], "configMapKeyRef")} if one.get("valueFrom") else one

    def container(one: Spec) -> Spec:
        changed = {"env": [variable(v) for v in one.get("env") or ()]}
        changed |= {"envFrom": [renamed(v, "configMapRef") for v in one.get("envFrom") or ()]}
        return one | {name: value for name, value in changed.items() if value}

    spec = _with_sources(spec, lambda source: renamed(source, "configMap"))
    return with_containers(with_volumes(spec, lambda volume: renamed(volume, "configMap")), container)


def point_to_upper_api(spec: Spec, _pod: Object, link: Link) -> Spec:
    """Set KUBERNETES_SERVICE_HOST and _PORT to the upper API server; a pod's own variables take precedence."""
    settings = link_settings.of(link)
    if not settings.api_host:
        return spec
    return with_variables(spec, api_variables(settings.api_host, settings.api_port))


def api_variables(host: str, port: str) -> dict[str, str]:
    """The environment variables by which in-cluster clients find the API server."""
    return {_HOST: host} | dict.fromkeys(_PORTS, port)


def _with_sources(spec: Spec, change: Callable[[Spec], Spec]) -> Spec:
    """The spec with every source of a projected volume changed."""

    def volume(one: Spec) -> Spec:
        projected = one.get("projected")
        if not projected:
            return one
        return one | {"projected": projected | {"sources": [change(s) for s in projected.get("sources") or ()]}}

    return with_volumes(spec, volume)
