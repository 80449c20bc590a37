"""The specification of a local cluster, parsed and validated once. Creating the cluster is left to `fleet`."""

import re
from typing import Self

import msgspec

from hansa.kube.language import quantity
from hansa.local.machines import addresses
from hansa.runtime.errors import HansaError

# A DNS label, short enough to be part of the names of network namespaces.
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?")
LABEL_KEY = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")


class InvalidSpec(HansaError):
    """The specification is not valid."""


class Taint(msgspec.Struct, frozen=True):
    """A taint of a node."""

    key: str
    effect: str
    value: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse kubectl's form, key[=value]:effect."""
        match = re.fullmatch(r"([^=:]+)(?:=([^=:]*))?:([^=:]+)", text)
        if not match or not LABEL_KEY.fullmatch(match[1]) or not LABEL_VALUE.fullmatch(match[2] or ""):
            raise InvalidSpec(f'taint "{text}" is not of the form key=value:effect')
        if match[3] not in EFFECTS:
            raise InvalidSpec(f'taint "{text}" has an unknown effect; it must be one of {", ".join(EFFECTS)}')
        return cls(key=match[1], value=match[2] or "", effect=match[3])


class NodeShape(msgspec.Struct, frozen=True):
    """Capacity, labels and taints of each kwok node of a cluster."""

    cpu: str = "32"
    memory: str = "256Gi"
    pods: str = "110"
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()


class ClusterSpec(msgspec.Struct, frozen=True):
    """The wanted state of a cluster."""

    name: str
    nodes: int = 0
    shape: NodeShape = NodeShape()
    real_nodes: int = 0
    join_pods: bool = False
    images: tuple[str, ...] = ()
    port: int | None = None
    scheduler: bool = True
    audit: bool = False
    lift_limits: bool = False
    flags: dict[str, tuple[str, ...]] = {}
    binaries: str | None = None

    @property
    def is_networked(self) -> bool:
        """Whether the cluster has network namespaces of its own, as real nodes need."""
        return self.real_nodes > 0


def label(text: str) -> tuple[str, str]:
    """Parse a node label, key=value."""
    key, sign, value = text.partition("=")
    if not sign or not LABEL_KEY.fullmatch(key) or not LABEL_VALUE.fullmatch(value):
        raise InvalidSpec(f'node label "{text}" is not of the form key=value')
    return key, value


def flag(text: str) -> tuple[str, str]:
    """Parse an extra flag of a component, COMPONENT=--flag[=value]."""
    component, sign, rest = text.partition("=")
    if component not in COMPONENTS:
        raise InvalidSpec(f'flag "{text}": "{component}" is none of {", ".join(COMPONENTS)}')
    if not sign or not rest.startswith("--"):
        raise InvalidSpec(f'flag "{text}" is not of the form COMPONENT=--flag=value')
    return component, rest


def check_name(name: str) -> None:
    """Refuse a name that cannot be part of node and namespace names."""
    if not NAME.fullmatch(name):
        raise InvalidSpec(
            f'"{name}" is not a valid cluster name: use up to 30 lower-case letters, digits and "-",'
            " beginning and ending with a letter or digit"
        )


def check(spec: ClusterSpec) -> None:
    """Refuse invalid values; the error names the flag and the value."""
    check_name(spec.name)
    for what, number in (("--nodes", spec.nodes), ("--real-nodes", spec.real_nodes)):
        if number < 0:
            raise InvalidSpec(f"{what} {number}: must not be negative")
    if spec.real_nodes > len(addresses.NODES):
        raise InvalidSpec(f"--real-nodes {spec.real_nodes}: at most {len(addresses.NODES)} are possible")
    if spec.port is not None and not 0 < spec.port < 65536:
        raise InvalidSpec(f"--port {spec.port}: must be from 1 to 65535")
    for what, text in (("cpu", spec.shape.cpu), ("memory", spec.shape.memory), ("pods", spec.shape.pods)):
        _check_quantity(what, text)


def _check_quantity(what: str, text: str) -> None:
    try:
        value = quantity.parse(text)
    except HansaError as error:
        raise InvalidSpec(f"--node-{what}: {error}") from error
    if value < quantity.parse("0"):
        raise InvalidSpec(f"--node-{what} {text}: must not be negative")
