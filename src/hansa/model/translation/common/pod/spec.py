"""Steps on a pod's spec. They share one decoded copy, since decoding is the largest part of their cost."""

from collections.abc import Callable, Mapping
from typing import Any

from hansa.kube.objects import Object
from hansa.model.mode import Step
from hansa.model.pair import Link

Spec = dict[str, Any]
SpecStep = Callable[[Spec, Object, Link], Spec]
CONTAINERS = ("initContainers", "containers", "ephemeralContainers")


def on_spec(*steps: SpecStep) -> Step:
    """Combine steps that only read and change the spec to one step."""

    def step(pod: Object, link: Link) -> Object:
        spec = pod.spec
        for change in steps:
            spec = change(spec, pod, link)
        return pod.with_fields(spec=spec)

    return step


def with_containers(spec: Spec, change: Callable[[Spec], Spec]) -> Spec:
    """The spec with every container of any kind changed."""
    return spec | {kind: [change(one) for one in spec[kind]] for kind in CONTAINERS if spec.get(kind)}


def with_volumes(spec: Spec, change: Callable[[Spec], Spec]) -> Spec:
    """The spec with every volume changed."""
    return spec | {"volumes": [change(one) for one in spec["volumes"]]} if spec.get("volumes") else spec


def with_variables(spec: Spec, variables: Mapping[str, str]) -> Spec:
    """The spec with these environment variables in every container; a container's own take precedence."""

    def container(one: Spec) -> Spec:
        env = one.get("env") or []
        own = {variable["name"] for variable in env}
        # First in the list, since a variable can only refer to earlier ones.
        return one | {"env": [{"name": n, "value": v} for n, v in variables.items() if n not in own] + env}

    return with_containers(spec, container) if variables else spec
