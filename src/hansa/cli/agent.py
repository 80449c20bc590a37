"""`hansa agent`: the federation of one cluster with its sources and targets (Admiralty's multicluster-scheduler)."""

import argparse
import ipaddress
from pathlib import Path
from typing import Any

from hansa.admission.settings import WebhookSettings
from hansa.app import agent, program
from hansa.cli import component_flags, log_flags, webhook
from hansa.federation import api
from hansa.kube.credentials.source import CredentialSource
from hansa.kube.objects import NamespacedName
from hansa.model.translation.federation.endpoints import PodNetwork
from hansa.modes import admiralty_admission
from hansa.modes.admiralty_settings import AdmiraltySettings

EXAMPLES = """\
examples:
  hansa agent --kubeconfig cluster1.kubeconfig
  hansa agent --kubeconfig cluster2.kubeconfig --cluster-name cluster2 --no-source-controller
  hansa agent --kubeconfig cluster1.kubeconfig --uninstall
"""
DESCRIPTION = """\
Run one in each cluster. A cluster is a source if it has Targets or ClusterTargets: pods with the annotation
multicluster.admiralty.io/elect, in namespaces labelled multicluster-scheduler=enabled, run in one of these. It is a
target if it has Sources or ClusterSources: these give other clusters the right to run pods in it.
"""


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "agent",
        help="run pods of one cluster in others (multicluster-scheduler)",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="kubeconfig of the cluster (default: as kubectl, or the pod's service account)",
    )
    parser.add_argument("--context", default="", help="context in the kubeconfig (default: its current context)")
    parser.add_argument(
        "--cluster-name",
        default="",
        metavar="NAME",
        help="name of this cluster in the label multicluster.admiralty.io/parent-cluster-name of its delegates"
        " (default: none)",
    )
    parser.add_argument(
        "--uninstall",
        action="store_true",
        help="remove delegates, virtual nodes, finalizers and what was installed, then exit (default false)",
    )
    parser.add_argument(
        "--stop-deployment",
        type=webhook.namespaced_name,
        metavar="NAMESPACE/NAME",
        help="with --uninstall: Deployment of agents to scale to zero first (default none)",
    )
    parser.add_argument(
        "--install",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="create or update definitions, ClusterRoles and the webhook's configuration (default true)",
    )
    parser.add_argument(
        "--multicluster-services",
        action="store_true",
        help="serve the Multi-Cluster Services API: export Services to the targets of this cluster, and give imported"
        " ones an address; wanted in each cluster (default false)",
    )
    _add_target_flags(parser.add_argument_group("as a target"))
    _add_source_flags(parser.add_argument_group("as a source"))
    component_flags.add_metrics(parser)
    component_flags.add_leader_election(parser)
    log_flags.add_to(parser)
    parser.set_defaults(run=_run, loop_factory=program.new_loop)


def _add_target_flags(group: Any) -> None:
    group.add_argument(
        "--source-controller",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="create service accounts and bindings for Sources (default true)",
    )
    group.add_argument(
        "--token-secrets",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="keep a Secret with a token for each service account of a Source, listed in it (default true)",
    )


def _add_source_flags(group: Any) -> None:
    group.add_argument(
        "--follow-claims",
        action="store_true",
        help="copy PersistentVolumeClaims of pods to their targets, which provision volumes for them (default false)",
    )
    group.add_argument(
        "--follow-service-accounts",
        action="store_true",
        help="create the service accounts of pods in their targets, without rights (default false)",
    )
    group.add_argument(
        "--pod-networks",
        type=_networks,
        default=(),
        metavar="[TARGET=]CIDR,...",
        help="networks of pods that all clusters reach directly; Services get EndpointSlices for delegates in other"
        " clusters that have addresses in them. TARGET is the name of the ClusterTarget or NAMESPACE/NAME of the Target"
        " whose pods the network has; without it, pods of any target may have addresses in it (default: none)",
    )
    _add_webhook_flags(group)


def _add_webhook_flags(group: Any) -> None:
    group.add_argument(
        "--webhook",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="serve the webhook that makes proxy pods (default true)",
    )
    group.add_argument(
        "--webhook-address",
        default="",
        metavar="HOST",
        help="address to serve the webhook on (default: that of this machine towards the API server)",
    )
    group.add_argument(
        "--webhook-port",
        type=component_flags.listening_port,
        default=0,
        metavar="PORT",
        help="port to serve the webhook on; 0 takes any free port (default %(default)s)",
    )
    group.add_argument(
        "--webhook-service",
        type=webhook.service_address,
        metavar="NAMESPACE/NAME[:PORT]",
        help="Service by which the API server reaches the webhook (default: none, address and port are used)",
    )
    group.add_argument("--webhook-url", default="", metavar="URL", help="URL by which the API server reaches it")
    group.add_argument("--webhook-cert", type=Path, metavar="FILE", help="serving certificate (default: self-signed)")
    group.add_argument("--webhook-key", type=Path, metavar="FILE", help="private key of --webhook-cert")
    group.add_argument(
        "--webhook-ca-bundle", type=Path, metavar="FILE", help="CA by which the API server verifies --webhook-cert"
    )
    group.add_argument(
        "--webhook-cert-secret",
        type=webhook.namespaced_name,
        metavar="NAMESPACE/NAME",
        help="Secret with a serving certificate that the replicas share, issue and renew (default: none)",
    )
    group.add_argument(
        "--webhook-owner",
        default="",
        metavar="CLUSTERROLE",
        help="ClusterRole with which the webhook's configuration is deleted (default: none)",
    )


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    settings = read(arguments)
    await (agent.uninstall(settings) if arguments.uninstall else agent.run(settings))
    return 0


def read(arguments: argparse.Namespace) -> agent.AgentSettings:
    """The settings given by the flags."""
    return agent.AgentSettings(
        cluster=CredentialSource(arguments.kubeconfig, arguments.context),
        name=arguments.cluster_name,
        mode=AdmiraltySettings(
            follows_claims=arguments.follow_claims,
            follows_service_accounts=arguments.follow_service_accounts,
            pod_networks=arguments.pod_networks,
            exports_services=arguments.multicluster_services,
        ),
        webhook=_webhook(arguments),
        serves_webhook=arguments.webhook,
        installs=arguments.install,
        controls_sources=arguments.source_controller,
        makes_tokens=arguments.token_secrets,
        deployment=arguments.stop_deployment,
        metrics_address=arguments.metrics_addr,
        election_namespace=component_flags.election_namespace(arguments),
    )


def _networks(text: str) -> tuple[PodNetwork, ...]:
    try:
        return tuple(_network(one.strip()) for one in text.split(",") if one.strip())
    except ValueError as error:
        wanted = "use networks such as 10.244.0.0/16,cluster2=fd00::/48,namespace/target=10.245.0.0/16"
        raise argparse.ArgumentTypeError(f'"{text}": {error}; {wanted}') from None


def _network(entry: str) -> PodNetwork:
    target, equals, network = entry.rpartition("=")
    return PodNetwork(_node(target) if equals else "", ipaddress.ip_network(network.strip()))


def _node(target: str) -> str:
    """The virtual node of NAME of a ClusterTarget, or of NAMESPACE/NAME of a Target."""
    *namespace, name = (one.strip() for one in target.split("/"))
    if len(namespace) > 1 or not all((*namespace, name)):
        raise ValueError(f'"{target}" is not the name of a target')
    return api.node_name(NamespacedName("".join(namespace), name))


def _webhook(arguments: argparse.Namespace) -> WebhookSettings | None:
    """None if the webhook listens on the address of this machine towards the API server."""
    if not (arguments.webhook_address or arguments.webhook_service or arguments.webhook_url):
        return None
    return WebhookSettings(
        host=arguments.webhook_address or "0.0.0.0",  # noqa: S104 - reached by a Service or a URL
        port=arguments.webhook_port,
        certificate=arguments.webhook_cert,
        key=arguments.webhook_key,
        secret=arguments.webhook_cert_secret,
        ca_bundle=webhook.ca_bundle(arguments.webhook_ca_bundle, "--webhook-ca-bundle"),
        owner=arguments.webhook_owner,
        service=arguments.webhook_service,
        url=arguments.webhook_url,
        name=admiralty_admission.CONFIGURATION_NAME,
    )
