"""What a user asks of a local cluster, checked once where it enters. How it is met is the other modules' matter."""

import re
from typing import Self

import msgspec

from hansa.kube import quantity
from hansa.local.machines import addresses
from hansa.runtime.errors import HansaError

# A label of DNS, short enough to be a part of the names of namespaces and interfaces.
NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?")
LABEL_KEY = re.compile(r"([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")

COMPONENTS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")


class InvalidSpec(HansaError):
    """The user asked for something that cannot be."""


class Taint(msgspec.Struct, frozen=True):
    """A taint of a node."""

    key: str
    effect: str
    value: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read kubectl's form, key[=value]:effect."""
        match = re.fullmatch(r"([^=:]+)(?:=([^=:]*))?:([^=:]+)", text)
        if not match or not LABEL_KEY.fullmatch(match[1]) or not LABEL_VALUE.fullmatch(match[2] or ""):
            raise InvalidSpec(f'taint "{text}" is not of the form key=value:effect')
        if match[3] not in EFFECTS:
            raise InvalidSpec(f'taint "{text}" has an unknown effect; it must be one of {", ".join(EFFECTS)}')
        return cls(key=match[1], value=match[2] or "", effect=match[3])


class NodeShape(msgspec.Struct, frozen=True):
    """What each kwok node of a cluster looks like."""

    cpu: str = "32"
    memory: str = "256Gi"
    pods: str = "110"
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()


class ClusterSpec(msgspec.Struct, frozen=True):
    """A cluster as it should be."""

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
        """Whether the cluster lives in network namespaces of its own, as real nodes need."""
        return self.real_nodes > 0


def label(text: str) -> tuple[str, str]:
    """Read a node label, key=value."""
    key, sign, value = text.partition("=")
    if not sign or not LABEL_KEY.fullmatch(key) or not LABEL_VALUE.fullmatch(value):
        raise InvalidSpec(f'node label "{text}" is not of the form key=value')
    return key, value


def flag(text: str) -> tuple[str, str]:
    """Read an extra flag of a component, COMPONENT=--flag[=value]."""
    component, sign, rest = text.partition("=")
    if component not in COMPONENTS:
        raise InvalidSpec(f'flag "{text}": "{component}" is none of {", ".join(COMPONENTS)}')
    if not sign or not rest.startswith("--"):
        raise InvalidSpec(f'flag "{text}" is not of the form COMPONENT=--flag=value')
    return component, rest


def check_name(name: str) -> None:
    """Refuse a cluster name that could not be a part of other names."""
    if not NAME.fullmatch(name):
        raise InvalidSpec(
            f'"{name}" cannot be a cluster\'s name: use up to 30 lower-case letters, digits and "-",'
            " with a letter or digit at both ends"
        )


def check(spec: ClusterSpec) -> None:
    """Refuse what cannot be, with a sentence for the user."""
    check_name(spec.name)
    for what, number in (("--nodes", spec.nodes), ("--real-nodes", spec.real_nodes)):
        if number < 0:
            raise InvalidSpec(f"{what} {number}: a number of nodes cannot be negative")
    if spec.real_nodes > len(addresses.NODES):
        raise InvalidSpec(f"--real-nodes {spec.real_nodes}: a cluster can have {len(addresses.NODES)}")
    if spec.port is not None and not 0 < spec.port < 65536:
        raise InvalidSpec(f"--port {spec.port}: a port is a number from 1 to 65535")
    for what, text in (("cpu", spec.shape.cpu), ("memory", spec.shape.memory), ("pods", spec.shape.pods)):
        _check_quantity(what, text)


def _check_quantity(what: str, text: str) -> None:
    try:
        value = quantity.parse(text)
    except HansaError as error:
        raise InvalidSpec(f"--node-{what}: {error}") from error
    if value < quantity.parse("0"):
        raise InvalidSpec(f"--node-{what} {text}: a node cannot have less than nothing")
