"""A pod manifest as the API server would store it, as far as resources and host ports are concerned. Pure.

Used for pods that do not exist yet: people write quantities as numbers, and leave out what has a default. Values of a
wrong type are kept, so that decoding them reports the field.
"""

from collections.abc import Iterable, Mapping
from typing import Any

Json = dict[str, Any]


def as_stored(pod: Mapping[str, Any]) -> Json:
    """The pod with quantities as text, requests that default to limits, and the ports of the host's network."""
    spec = pod.get("spec")
    return {**pod, "spec": _spec(spec)} if isinstance(spec, Mapping) else dict(pod)


def _spec(spec: Mapping[str, Any]) -> Json:
    on_host = spec.get("hostNetwork") is True
    found = dict(spec)
    for kind in ("containers", "initContainers"):
        if isinstance(spec.get(kind), list):
            found[kind] = [_container(one, on_host=on_host) for one in spec[kind]]
    if isinstance(spec.get("overhead"), Mapping):
        found["overhead"] = _quantities(spec["overhead"])
    if isinstance(spec.get("resources"), Mapping):
        found["resources"] = _resources(spec["resources"], without=_requested(found.get("containers")))
    return found


def _container(container: Any, *, on_host: bool) -> Any:
    if not isinstance(container, Mapping):
        return container
    found = dict(container)
    if isinstance(container.get("resources"), Mapping):
        found["resources"] = _resources(container["resources"])
    if on_host and isinstance(container.get("ports"), list):
        found["ports"] = [_on_host(port) for port in container["ports"]]
    return found


def _on_host(port: Any) -> Any:
    if not isinstance(port, Mapping) or port.get("hostPort"):
        return port
    return {**port, "hostPort": port.get("containerPort", 0)}


def _resources(resources: Mapping[str, Any], *, without: Iterable[str] = ()) -> Json:
    """Requests default to limits, except for resources that containers of the pod request."""
    found = {name: _quantities(value) if isinstance(value, Mapping) else value for name, value in resources.items()}
    limits, requests = found.get("limits"), found.get("requests") or {}
    if isinstance(limits, dict) and isinstance(requests, dict):
        found["requests"] = {name: text for name, text in limits.items() if name not in without} | requests
    return found


def _requested(containers: Any) -> set[str]:
    parts = [one.get("resources") for one in containers or () if isinstance(one, Mapping)]
    return {name for one in parts if isinstance(one, Mapping) for name in one.get("requests") or ()}


def _quantities(amounts: Mapping[str, Any]) -> Json:
    return {name: str(value) if type(value) in (int, float) else value for name, value in amounts.items()}
