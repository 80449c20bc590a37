"""`hansa virtual-node`: a virtual node in an upper cluster for each lower cluster, whose pods run there."""

import argparse
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hansa.app import program, virtual_node
from hansa.cli import component_flags, go_values, log_flags, unused_flags, upstream_flags
from hansa.kube.credentials.source import CredentialSource
from hansa.kubelet.certificates import CertificateFiles
from hansa.modes import tensile_file, tensile_settings
from hansa.modes.tensile_settings import (
    IGNORED_LABELS,
    PROVIDER,
    Controllers,
    InvalidSettings,
    LowerSettings,
    TensileSettings,
)

DEFAULT_NODE = "virtual-kubelet"
ONE_LOWER = (  # flags that cannot be used with --config, whose file has the same fields
    *("nodename", "kubeconfig", "client_kubeconfig", "disable_taint", "enable_controllers", "ignore_labels"),
    *("upper_address", "excluded_namespaces", "system_services"),
)
EXAMPLES = """\
examples:
  hansa virtual-node --nodename vn1 --kubeconfig upper.kubeconfig --client-kubeconfig lower.kubeconfig
  hansa virtual-node --config league.yaml

environment: KUBELET_PORT, APISERVER_CERT_LOCATION, APISERVER_KEY_LOCATION, VKUBELET_POD_IP, VKUBELET_EXTERNAL_POD_IP,
  VKUBELET_NODE_LABEL (key:value), VKUBELET_TAINT_KEY, VKUBELET_TAINT_VALUE, VKUBELET_TAINT_EFFECT
"""


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "virtual-node",
        help="run pods of one cluster in others, behind virtual nodes (tensile)",
        description="Creates a virtual node in the upper cluster for a lower cluster: pods bound to it run there.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="YAML file that describes one or more lower clusters (default none)"
    )
    _add_one_lower(parser.add_argument_group("one lower cluster, without --config"))
    component_flags.add_version(parser)
    component_flags.add_metrics(parser)
    component_flags.add_leader_election(parser)
    unused_flags.add_to(parser, "tensile-kube's virtual-node", upstream_flags.VIRTUAL_NODE)
    log_flags.add_to(parser)
    parser.set_defaults(run=_run, loop_factory=program.new_loop)


def _add_one_lower(group: Any) -> None:
    names = ",".join(Controllers)
    group.add_argument(
        "--nodename",
        metavar="NAME",
        help=f"name of the virtual node (default $DEFAULTNODE_NAME, otherwise {DEFAULT_NODE})",
    )
    group.add_argument("--provider", default=PROVIDER, help="provider, must be %(default)s (default %(default)s)")
    group.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="kubeconfig of the upper cluster (default: as kubectl, or the pod's service account)",
    )
    group.add_argument(
        "--client-kubeconfig", type=Path, metavar="FILE", help="kubeconfig of the lower cluster (required)"
    )
    go_values.add_boolean(group, "--disable-taint", default=False, help="do not taint the virtual node")
    group.add_argument(
        "--enable-controllers",
        "--enableControllers",
        metavar="NAMES",
        help=f"comma-separated controllers of kinds to sync besides pods, ConfigMaps and Secrets (default {names})",
    )
    group.add_argument(
        "--ignore-labels",
        metavar="KEYS",
        help=f"comma-separated labels of pods that are not synced (default {','.join(IGNORED_LABELS)})",
    )
    group.add_argument(
        "--upper-address",
        type=_upper_address,
        default="",
        metavar="HOST:PORT",
        help="KUBERNETES_SERVICE_HOST and _PORT of lower pods, to reach the upper API server (default: not set)",
    )
    group.add_argument(
        "--excluded-namespaces",
        default="",
        metavar="NAMES",
        help="comma-separated namespaces whose pods and Services are not synced (default none)",
    )
    go_values.add_boolean(
        group,
        "--system-services",
        default=False,
        help="sync the Service default/kubernetes and those of kube-system, too",
    )


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    await virtual_node.run(
        read(arguments, os.environ),
        metrics_address=arguments.metrics_addr,
        election_namespace=component_flags.election_namespace(arguments),
    )
    return 0


def read(arguments: argparse.Namespace, environment: Mapping[str, str]) -> TensileSettings:
    """The settings given by flags and environment variables, or by the file of --config."""
    if arguments.provider != PROVIDER:
        raise InvalidSettings(f'unknown --provider "{arguments.provider}"; supported: {PROVIDER}')
    serving = _serving(environment)
    if arguments.config is not None:
        if given := [name for name in ONE_LOWER if getattr(arguments, name) not in (None, "", False)]:
            raise InvalidSettings(f"--{given[0].replace('_', '-')} cannot be used with --config; set it in the file")
        return replace(tensile_file.read(arguments.config), serving=serving)
    if arguments.client_kubeconfig is None:
        raise InvalidSettings("no lower cluster given: use --client-kubeconfig FILE, or --config FILE for several")
    return replace(_one_lower(arguments, environment), serving=serving)


def _one_lower(arguments: argparse.Namespace, environment: Mapping[str, str]) -> TensileSettings:
    name = arguments.nodename or environment.get("DEFAULTNODE_NAME") or DEFAULT_NODE
    node = tensile_settings.node_of_environment(name, environment, is_tainted=not arguments.disable_taint)
    ignored, controllers = arguments.ignore_labels, arguments.enable_controllers
    link = tensile_settings.link(
        node,
        upper_address=arguments.upper_address,
        ignored_labels=IGNORED_LABELS if ignored is None else _names(ignored),
    )
    return TensileSettings(
        upper=CredentialSource(arguments.kubeconfig),
        lowers=(LowerSettings(CredentialSource(arguments.client_kubeconfig, flag="--client-kubeconfig"), node, link),),
        controllers=tensile_settings.controllers(Controllers if controllers is None else _names(controllers)),
        excluded_namespaces=frozenset(_names(arguments.excluded_namespaces)),
        syncs_system_services=arguments.system_services,
    )


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _upper_address(text: str) -> str:
    try:
        tensile_settings.host_and_port(text)
    except InvalidSettings as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _serving(environment: Mapping[str, str]) -> CertificateFiles | None:
    """The certificate and key of the kubelet API that the environment names."""
    named = {name: environment.get(name, "") for name in ("APISERVER_CERT_LOCATION", "APISERVER_KEY_LOCATION")}
    if not any(named.values()):
        return None
    for variable, path in named.items():
        if not path:
            raise InvalidSettings(f"{variable} is not set, but the other one of {' and '.join(named)} is; set both")
        try:
            Path(path).read_bytes()
        except OSError as error:
            raise InvalidSettings(f"cannot read {path}, named by {variable}: {error.strerror}") from None
    return CertificateFiles(*map(Path, named.values()))
