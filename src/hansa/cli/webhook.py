"""`hansa webhook`: the admission webhook of an upper cluster whose pods run in lower ones."""

import argparse
from pathlib import Path
from typing import Any

from hansa.admission import configuration, settings
from hansa.app import program, webhook
from hansa.cli import component_flags, go_values, log_flags, unused_flags, upstream_flags
from hansa.kube.objects import NamespacedName
from hansa.runtime.errors import HansaError

EXAMPLES = """\
examples:
  hansa webhook --kubeconfig upper.kubeconfig --address 127.0.0.1 --port 8443
  hansa webhook --service hansa-system/webhook --tlscert tls.crt --tlskey tls.key
"""


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "webhook",
        help="run the admission webhook of an upper cluster (tensile)",
        description="Serves an admission webhook that moves nodeSelector, node affinity and tolerations of new pods"
        " into the annotation clusterSelector, from which they apply in the lower cluster, and that sends pods with"
        " bound claims to the virtual node of the cluster that has the volumes.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="kubeconfig of the upper cluster (default: as kubectl)"
    )
    parser.add_argument("--address", default="0.0.0.0", help="IP address to listen on (default %(default)s)")  # noqa: S104
    parser.add_argument(
        "--port",
        type=component_flags.listening_port,
        default=8080,
        help="port to listen on; 0 takes any free port (default %(default)s)",
    )
    parser.add_argument(
        "--tlscert", type=Path, metavar="FILE", help="serving certificate (default: self-signed, made at each start)"
    )
    parser.add_argument(
        "--tlskey", type=Path, metavar="FILE", help="private key of --tlscert (default: made with the certificate)"
    )
    parser.add_argument(
        "--cert-secret",
        type=namespaced_name,
        metavar="NAMESPACE/NAME",
        help="Secret with a serving certificate that the replicas share, issue and renew (default: none)",
    )
    parser.add_argument(
        "--CA",
        dest="client_ca",
        type=Path,
        metavar="FILE",
        help="CA of client certificates; without one of this CA a client is refused (default: any client)",
    )
    parser.add_argument(
        "--ignore-selector-keys",
        default="clusterID",
        metavar="KEYS",
        help="comma-separated node labels that virtual nodes have: constraints on them stay in the pod's spec"
        " (default %(default)s)",
    )
    _add_configuration(parser.add_argument_group("MutatingWebhookConfiguration"))
    unused_flags.add_to(parser, "tensile-kube's webhook", upstream_flags.WEBHOOK)
    component_flags.add_version(parser)
    component_flags.add_metrics(parser)
    log_flags.add_to(parser)
    parser.set_defaults(run=_run, loop_factory=program.new_loop)


def _add_configuration(group: Any) -> None:
    go_values.add_negatable(group, "--install", help="create or update the configuration in the upper cluster")
    group.add_argument(
        "--name", default=configuration.DEFAULT_NAME, help="name of the configuration (default %(default)s)"
    )
    group.add_argument(
        "--service",
        type=service_address,
        metavar="NAMESPACE/NAME[:PORT]",
        help="Service by which the API server reaches the webhook; PORT is 443 if not given (default: none, --url is"
        " used)",
    )
    group.add_argument(
        "--url", default="", help="URL by which the API server reaches the webhook (default: address and port)"
    )
    group.add_argument(
        "--ca-bundle",
        type=Path,
        metavar="FILE",
        help="CA by which the API server verifies --tlscert (default: the caBundle that the configuration has)",
    )
    group.add_argument(
        "--owner",
        default="",
        metavar="CLUSTERROLE",
        help="ClusterRole with which the configuration is deleted (default: none)",
    )
    group.add_argument(
        "--failure-policy",
        choices=("Fail", "Ignore"),
        default="Fail",
        help="what the API server does with a pod while the webhook is unreachable (default %(default)s)",
    )


def service_address(text: str) -> configuration.Service:
    """Parse the value of a flag that names a Service."""
    try:
        service = settings.service(text)
    except HansaError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    component_flags.port(str(service.port))
    return service


def namespaced_name(text: str) -> NamespacedName:
    """Parse the value of a flag that names an object of a namespace."""
    try:
        return settings.namespaced_name(text)
    except HansaError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    await webhook.run(read(arguments))
    return 0


def read(arguments: argparse.Namespace) -> settings.WebhookSettings:
    """The settings given by the flags."""
    return settings.WebhookSettings(
        kubeconfig=arguments.kubeconfig,
        host=arguments.address,
        port=arguments.port,
        certificate=arguments.tlscert,
        key=arguments.tlskey,
        secret=arguments.cert_secret,
        client_ca=arguments.client_ca,
        upper_label_keys=frozenset(key for key in arguments.ignore_selector_keys.split(",") if key),
        service=arguments.service,
        url=arguments.url,
        ca_bundle=ca_bundle(arguments.ca_bundle, "--ca-bundle"),
        failure_policy=arguments.failure_policy,
        name=arguments.name,
        owner=arguments.owner,
        is_installed=arguments.install,
        metrics_address=arguments.metrics_addr,
    )


def ca_bundle(path: Path | None, flag: str) -> bytes:
    """The content of a CA bundle that a flag names; empty without one."""
    try:
        return path.read_bytes() if path else b""
    except OSError as error:
        raise HansaError(f"cannot read {flag} {path}: {error.strerror}") from None
