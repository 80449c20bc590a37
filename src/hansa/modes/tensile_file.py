"""The configuration file of several virtual nodes. Paths in it are relative to the file."""

from pathlib import Path

import msgspec
import yaml

from hansa.kube.credentials.source import CredentialSource
from hansa.modes import tensile_settings
from hansa.modes.tensile_settings import IGNORED_LABELS, PROVIDER, InvalidSettings, LowerSettings, TensileSettings
from hansa.nodes import settings as node_settings
from hansa.nodes.settings import NodeSettings

NO_TAINT = "none"


class _Cluster(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    kubeconfig: str = ""
    context: str = ""


class _Lower(_Cluster, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    name: str
    node: str = ""  # default: the cluster's name
    labels: dict[str, str] = {}
    taint: str = ""
    address: str = ""
    external_address: str = ""
    scheduler: str = ""
    keeps_priority_classes: bool = False


class _File(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    upper: _Cluster = _Cluster()
    lowers: tuple[_Lower, ...]
    upper_address: str = ""
    ignore_labels: tuple[str, ...] = tuple(IGNORED_LABELS)
    controllers: tuple[str, ...] = tuple(tensile_settings.Controllers)
    excluded_namespaces: tuple[str, ...] = ()
    system_services: bool = False


def read(path: Path) -> TensileSettings:
    """Read and parse the file."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSettings(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    return parse(text, origin=str(path), folder=path.absolute().parent)


def parse(text: str, *, origin: str, folder: Path) -> TensileSettings:
    """Parse a file's text; `origin` is its name in messages."""
    try:
        file = msgspec.convert(yaml.safe_load(text), _File)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" at line {mark.line + 1}" if mark else ""
        raise InvalidSettings(
            f"{origin} is not YAML{line}: {getattr(error, 'problem', None) or 'unreadable'}"
        ) from None
    except msgspec.ValidationError as error:
        raise InvalidSettings(f"{origin}: {error}") from None
    return TensileSettings(
        upper=_source(file.upper, folder, "upper"),
        lowers=tuple(_lower(one, file, folder) for one in file.lowers),
        controllers=tensile_settings.controllers(file.controllers),
        excluded_namespaces=frozenset(file.excluded_namespaces),
        syncs_system_services=file.system_services,
    )


def _lower(described: _Lower, file: _File, folder: Path) -> LowerSettings:
    default = node_settings.provider_taint(PROVIDER, {})
    taint = None if described.taint == NO_TAINT else tensile_settings.taint(described.taint or str(default))
    node = NodeSettings(
        described.node or described.name,
        described.name,
        labels=described.labels,
        taint=taint,
        internal_ip=described.address,
        external_ip=described.external_address,
    )
    link = tensile_settings.link(
        node,
        upper_address=file.upper_address,
        ignored_labels=file.ignore_labels,
        scheduler=described.scheduler,
        keeps_priority_class=described.keeps_priority_classes,
    )
    return LowerSettings(_source(described, folder, f"lowers[{described.name}]"), node, link)


def _source(described: _Cluster, folder: Path, where: str) -> CredentialSource:
    path = folder / Path(described.kubeconfig).expanduser() if described.kubeconfig else None
    return CredentialSource(path, described.context, flag=f"{where}.kubeconfig of --config")
