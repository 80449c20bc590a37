"""The configuration of the multi-scheduler, as tensile-kube has it: a KubeSchedulerConfiguration in JSON or YAML.

Read are the lower clusters in the arguments of the plugin `multi-scheduler`, the kubeconfig and the leader election.
"""

from pathlib import Path
from typing import Any

import msgspec
import yaml

from hansa.kube.credentials.source import CredentialSource
from hansa.modes.multi_scheduler_settings import MultiSchedulerSettings
from hansa.modes.tensile_settings import InvalidSettings

PLUGIN = "multi-scheduler"


class _Lower(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kube_config: str = ""
    kube_master: str = ""
    name: str = ""


class _Arguments(msgspec.Struct, frozen=True):
    cluster_configuration: dict[str, _Lower] = {}


class _PluginConfig(msgspec.Struct, frozen=True):
    name: str = ""
    args: msgspec.Raw = msgspec.Raw(b"{}")


class _Profile(msgspec.Struct, frozen=True, rename="camel"):
    plugin_config: tuple[_PluginConfig, ...] = ()


class _Connection(msgspec.Struct, frozen=True):
    kubeconfig: str = ""


class _Election(msgspec.Struct, frozen=True, rename="camel"):
    leader_elect: bool = False
    resource_namespace: str = "kube-system"


class _File(_Profile, frozen=True, rename="camel"):
    kind: str = ""
    client_connection: _Connection = _Connection()
    leader_election: _Election = _Election()
    profiles: tuple[_Profile, ...] = ()


def read(path: Path) -> MultiSchedulerSettings:
    """Read and parse the file. Paths in it are relative to it."""
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSettings(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None
    return parse(text, origin=str(path), folder=path.absolute().parent)


def parse(text: str, *, origin: str, folder: Path) -> MultiSchedulerSettings:
    """Parse a file's text; `origin` is its name in messages."""
    file = _decoded(text, _File, origin)
    if file.kind != "KubeSchedulerConfiguration":
        raise InvalidSettings(f'{origin}: kind is "{file.kind}", but must be KubeSchedulerConfiguration')
    lowers = {
        name: _source(name, lower, origin, folder)
        for profile in (file, *file.profiles)
        for one in profile.plugin_config
        if one.name == PLUGIN
        for name, lower in _decoded(bytes(one.args), _Arguments, origin).cluster_configuration.items()
    }
    if not lowers:
        raise InvalidSettings(f"{origin}: no lower cluster in pluginConfig[{PLUGIN}].args.cluster_configuration")
    upper = file.client_connection.kubeconfig
    return MultiSchedulerSettings(
        upper=CredentialSource(folder / Path(upper).expanduser() if upper else None),
        lowers=lowers,
        election_namespace=file.leader_election.resource_namespace if file.leader_election.leader_elect else "",
    )


def _decoded(text: str | bytes, kind: type[Any], origin: str) -> Any:
    try:
        return msgspec.json.decode(msgspec.json.encode(yaml.safe_load(text)), type=kind)
    except yaml.YAMLError as error:
        raise InvalidSettings(f"{origin} is neither JSON nor YAML: {getattr(error, 'problem', error)}") from None
    except RecursionError:
        raise InvalidSettings(f"{origin} is nested too deeply, or refers to itself") from None
    except (msgspec.DecodeError, TypeError) as error:
        raise InvalidSettings(f"{origin}: {error}") from None


def _source(name: str, lower: _Lower, origin: str, folder: Path) -> CredentialSource:
    if not lower.kube_config:
        raise InvalidSettings(f"{origin}: cluster_configuration[{name}].kube_config is missing: name a kubeconfig file")
    return CredentialSource(folder / Path(lower.kube_config).expanduser(), flag=f"cluster_configuration[{name}]")
