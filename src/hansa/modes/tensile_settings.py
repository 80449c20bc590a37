"""Settings of the tensile mode, validated on input: tensile-kube's flags and variables for one node, a file for more.

Used by `hansa virtual-node`; `tensile_file` parses the file.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hansa.kube.credentials.source import CredentialSource
from hansa.kube.language import tolerations
from hansa.kubelet.certificates import CertificateFiles
from hansa.model import keys
from hansa.model.translation.common.link_settings import LinkSettings
from hansa.nodes import settings as node_settings
from hansa.nodes.settings import NodeSettings
from hansa.runtime import errors

PROVIDER: Final = "k8s"
IGNORED_LABELS: Final = LinkSettings().ignored_labels


class InvalidSettings(errors.HansaError):
    """A flag, variable or field has a value that is not supported."""


class Controllers(StrEnum):
    """Values of --enable-controllers: kinds that are synced in addition to pods, ConfigMaps and Secrets."""

    VOLUMES = "PVControllers"
    RIGHTS = "RBACControllers"
    SERVICES = "ServiceControllers"


@dataclass(frozen=True, slots=True)
class LowerSettings:
    """One lower cluster: its credentials, its virtual node, and the settings of its link."""

    source: CredentialSource
    node: NodeSettings
    link: LinkSettings


@dataclass(frozen=True, slots=True)
class TensileSettings:
    """One upper cluster and its lower ones."""

    upper: CredentialSource
    lowers: tuple[LowerSettings, ...]
    controllers: frozenset[Controllers] = frozenset(Controllers)
    excluded_namespaces: frozenset[str] = frozenset()
    syncs_system_services: bool = False
    serving: CertificateFiles | None = None  # of the kubelet API; None: signed by the upper cluster

    def __post_init__(self) -> None:
        if not self.lowers:
            raise InvalidSettings("no lower cluster: configure at least one")
        _check_unique("lower cluster", [lower.node.lower for lower in self.lowers])
        _check_unique("node", [lower.node.name for lower in self.lowers])


def controllers(names: Iterable[str]) -> frozenset[Controllers]:
    """Parse --enable-controllers. An unknown name is an error: ignored, it would be noticed much later."""
    given = {name.strip() for name in names} - {""}
    if unknown := sorted(given - set(Controllers)):
        raise InvalidSettings(f'unknown controller "{unknown[0]}"; supported: {", ".join(Controllers)}')
    return frozenset(map(Controllers, given))


def node_of_environment(name: str, environment: Mapping[str, str], *, is_tainted: bool) -> NodeSettings:
    """The node of tensile-kube's flags and variables. Its name is also the name of its cluster."""
    return NodeSettings(
        name,
        name,
        labels=node_settings.extra_label(environment),
        taint=node_settings.provider_taint(PROVIDER, environment) if is_tainted else None,
        internal_ip=environment.get("VKUBELET_POD_IP") or (name if node_settings.is_address(name) else ""),
        external_ip=environment.get("VKUBELET_EXTERNAL_POD_IP", ""),
        port=_port(environment.get("KUBELET_PORT", "")),
    )


def link(
    node: NodeSettings,
    *,
    upper_address: str = "",
    ignored_labels: Iterable[str] = IGNORED_LABELS,
    scheduler: str = "",
    keeps_priority_class: bool = False,
) -> LinkSettings:
    """The settings of the link to the lower cluster that a node represents."""
    host, port = host_and_port(upper_address)
    return LinkSettings(
        node=node.name,
        node_labels={
            keys.VIRTUAL_KUBELET_TYPE: "virtual-kubelet",
            "kubernetes.io/hostname": node.name,
            "kubernetes.io/role": "agent",
            keys.VIRTUAL_NODE: "true",
            **node.labels,
        },
        taint=node.taint.key if node.taint else keys.PROVIDER_TAINT,
        ignored_labels=frozenset(ignored_labels),
        scheduler=scheduler,
        keeps_priority_class=keeps_priority_class,
        api_host=host,
        api_port=port,
    )


def taint(text: str) -> tolerations.Taint:
    """Parse key[=value]:effect, as in kubectl taint."""
    rest, colon, effect = text.rpartition(":")
    key, _, value = rest.partition("=")
    if not colon or not key:
        raise InvalidSettings(f'taint "{text}" is not of the form key=value:effect')
    if effect not in list(tolerations.Effect):
        raise InvalidSettings(f'taint "{text}" has an unknown effect; supported: {", ".join(tolerations.Effect)}')
    return tolerations.Taint(key, value, effect)


def host_and_port(text: str) -> tuple[str, str]:
    """Parse HOST, HOST:PORT or [ADDRESS]:PORT; the default port is 443."""
    host, colon, port = text.rpartition(":")
    if not colon or text.endswith("]") or node_settings.is_address(text):
        host, port = text, "443"
    if not port.isdecimal():
        raise InvalidSettings(f'"{text}" is not of the form HOST:PORT')
    if not 0 < int(port) < 65536:
        raise InvalidSettings(f'"{text}" has an invalid port: use a number from 1 to 65535')
    return host.strip("[]"), port


def _port(text: str) -> int:
    if not text:
        return 0
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise InvalidSettings(f'invalid KUBELET_PORT "{text}": use a number from 1 to 65535')
    return int(text)


def _check_unique(what: str, names: list[str]) -> None:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidSettings(f"duplicate {what} {twice[0]}: use another name for one of them")
