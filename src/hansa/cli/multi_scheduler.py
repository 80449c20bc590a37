"""`hansa multi-scheduler`: kube-scheduler sends pods to virtual nodes only where a node of the lower cluster fits."""

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from hansa.app import multi_scheduler, program
from hansa.cli import component_flags, go_values, log_flags, unused_flags, upstream_flags
from hansa.kube.credentials.source import CredentialSource
from hansa.modes import multi_scheduler_file, multi_scheduler_settings
from hansa.modes.multi_scheduler_settings import MultiSchedulerSettings
from hansa.runtime.errors import HansaError
from hansa.scheduling.extender import server

EXAMPLES = """\
examples:
  hansa multi-scheduler --config multi-scheduler-config.json --write-scheduler-config scheduler.yaml
  hansa multi-scheduler --config multi-scheduler-config.json --kubeconfig upper.kubeconfig &
  kube-scheduler --config scheduler.yaml
"""


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "multi-scheduler",
        help="schedule pods to virtual nodes by what fits on nodes of their lower clusters (tensile)",
        description="Serves filter, prioritize and bind as an extender of the stock kube-scheduler. A pod goes to a"
        " virtual node\nonly if a node of its lower cluster fits it now; the pod's event says why each one refused.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_clusters(parser)
    parser.add_argument(
        "--bind-address",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="loopback address to listen on (default %(default)s)",
    )
    parser.add_argument(
        "--port",
        type=component_flags.port,
        default=multi_scheduler_settings.PORT,
        help="port to listen on (default %(default)s)",
    )
    parser.add_argument(
        "--write-scheduler-config",
        type=Path,
        metavar="FILE",
        help="write a configuration of kube-scheduler that uses the extender, and exit",
    )
    parser.add_argument(
        "--scheduler-name",
        default=multi_scheduler_settings.SCHEDULER,
        metavar="NAME",
        help="in that configuration: name of the scheduler that pods select, and of its Lease if it is not the default"
        " (default %(default)s)",
    )
    go_values.add_boolean(
        parser,
        "--ignorable",
        default=False,
        help="in that configuration: schedule without the extender while it is not available",
    )
    component_flags.add_version(parser)
    component_flags.add_metrics(parser)
    component_flags.add_leader_election(
        parser,
        "--leader-elect-resource-namespace",
        leases="the Lease of kube-scheduler, in the written configuration; every multi-scheduler serves its own",
    )
    unused_flags.add_to(parser, "kube-scheduler", upstream_flags.MULTI_SCHEDULER)
    log_flags.add_to(parser)
    parser.set_defaults(run=_run, loop_factory=program.new_loop)


def add_clusters(parser: argparse.ArgumentParser) -> None:
    """Add the flags that name the upper cluster and the lower ones."""
    parser.add_argument(
        "--config",
        type=Path,
        required=True,
        metavar="FILE",
        help="KubeSchedulerConfiguration with the lower clusters in pluginConfig[multi-scheduler]"
        ".args.cluster_configuration",
    )
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="kubeconfig of the upper cluster (default: clientConnection.kubeconfig of --config, or as kubectl)",
    )


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    settings = read(arguments)
    if arguments.write_scheduler_config is None:
        await multi_scheduler.run(settings)
    else:
        _write(arguments.write_scheduler_config, settings, arguments)
    return 0


def clusters(arguments: argparse.Namespace) -> MultiSchedulerSettings:
    """The settings of the file, with the upper cluster of the flag."""
    file = multi_scheduler_file.read(arguments.config)
    upper = CredentialSource(arguments.kubeconfig) if arguments.kubeconfig else file.upper
    return dataclasses.replace(file, upper=upper)


def read(arguments: argparse.Namespace) -> MultiSchedulerSettings:
    """The settings given by the file and the flags, which win."""
    server.check_loopback(arguments.bind_address)
    file = clusters(arguments)
    return dataclasses.replace(
        file,
        host=arguments.bind_address,
        port=arguments.port,
        metrics_address=arguments.metrics_addr,
        election_namespace=component_flags.election_namespace(arguments) or file.election_namespace,
    )


def _write(path: Path, settings: MultiSchedulerSettings, arguments: argparse.Namespace) -> None:
    made = multi_scheduler_settings.scheduler_configuration(
        settings, is_ignorable=arguments.ignorable, name=arguments.scheduler_name
    )
    try:
        path.write_text(made)
    except OSError as error:
        raise HansaError(f"cannot write --write-scheduler-config {path}: {error.strerror}") from None
    print(f"wrote {path}: start kube-scheduler with --config {path}")
