"""What a user says about a virtual node, with the variables that virtual-kubelet reads; checked where it enters."""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from hansa.kube.language import tolerations
from hansa.model import keys
from hansa.runtime import errors

# A node's name is also the value of its hostname label, which is shorter than names may be.
_NAME = re.compile(r"(?=.{1,63}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """One virtual node. `lower` names the lower cluster that it stands for and must not change while it lives.

    `port` is where its kubelet API is served, 0 if it is not. Nodes of the lower cluster whose taints `consent`
    tolerates are counted as room for pods; others with taints are not.
    """

    name: str
    lower: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taint: tolerations.Taint | None = None
    internal_ip: str = ""
    external_ip: str = ""
    port: int = 0
    consent: tuple[tolerations.Toleration, ...] = ()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise errors.HansaError(
                f'"{self.name}" cannot be a node\'s name: use up to 63 lower-case letters, digits, "-" and "."'
            )
        for address in (self.internal_ip, self.external_ip):
            if address and not is_address(address):
                raise errors.HansaError(f'node {self.name}: "{address}" is not an IP address')


def provider_taint(provider: str, environment: Mapping[str, str]) -> tolerations.Taint:
    """The taint that keeps pods away that were not made for virtual nodes; VKUBELET_TAINT_* change its parts."""
    effect = environment.get("VKUBELET_TAINT_EFFECT") or tolerations.Effect.NO_SCHEDULE.value
    if effect not in list(tolerations.Effect):
        allowed = ", ".join(tolerations.Effect)
        raise errors.HansaError(f'VKUBELET_TAINT_EFFECT is "{effect}", but must be one of {allowed}')
    return tolerations.Taint(
        key=environment.get("VKUBELET_TAINT_KEY") or keys.PROVIDER_TAINT,
        value=environment.get("VKUBELET_TAINT_VALUE") or provider,
        effect=effect,
    )


def extra_label(environment: Mapping[str, str]) -> dict[str, str]:
    """The label in VKUBELET_NODE_LABEL, written key:value; none if it is not set."""
    text = environment.get("VKUBELET_NODE_LABEL", "")
    key, sign, value = text.partition(":")
    if text and not (sign and key and ":" not in value):
        raise errors.HansaError(f'VKUBELET_NODE_LABEL is "{text}", but must be of the form key:value')
    return {key: value} if text else {}


def is_address(text: str) -> bool:
    """Whether a text is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
