"""Settings of a virtual node, and the environment variables of virtual-kubelet. Validated on input."""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from hansa.kube.language import tolerations
from hansa.model import keys
from hansa.runtime import errors

# The name is also the value of the label kubernetes.io/hostname: 63 characters, where a name may have 253.
_NAME = re.compile(r"(?=.{1,63}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """One virtual node. `lower` is the name of the lower cluster that it represents; it must not change.

    `port` is the port of its kubelet API; 0: not served. Lower nodes with taints count as capacity only if `tolerated`
    tolerates these.
    """

    name: str
    lower: str
    labels: Mapping[str, str] = field(default_factory=dict)
    taint: tolerations.Taint | None = None
    internal_ip: str = ""
    external_ip: str = ""
    port: int = 0
    tolerated: tuple[tolerations.Toleration, ...] = ()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise errors.HansaError(
                f'invalid node name "{self.name}": use up to 63 lower-case letters, digits, "-" and "."'
            )
        for address in (self.internal_ip, self.external_ip):
            if address and not is_address(address):
                raise errors.HansaError(f'node {self.name}: "{address}" is not an IP address')


def provider_taint(provider: str, environment: Mapping[str, str]) -> tolerations.Taint:
    """The taint of a virtual node, which only pods for virtual nodes tolerate; set by VKUBELET_TAINT_*."""
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
