"""`hansa descheduler`: moves pods that their lower cluster cannot schedule."""

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from hansa.app import descheduler, program
from hansa.app.descheduler import DeschedulerSettings
from hansa.cli import component_flags, go_values, log_flags, unused_flags, upstream_flags
from hansa.kube.credentials.source import CredentialSource
from hansa.runtime.errors import HansaError
from hansa.scheduling.descheduling import policy
from hansa.scheduling.descheduling.policy import Policy

EXAMPLES = """\
examples:
  hansa descheduler --kubeconfig upper.kubeconfig --dry-run
  hansa descheduler --kubeconfig upper.kubeconfig --policy-config-file policy.yaml
"""


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "descheduler",
        help="move pods that their lower cluster cannot schedule (tensile)",
        description="Evicts pods on virtual nodes that the lower cluster cannot schedule. Their controllers create them"
        "\nagain, and hansa webhook keeps these off the cluster that refused, for a time.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="kubeconfig of the upper cluster (default: as kubectl)"
    )
    parser.add_argument(
        "--policy-config-file",
        type=Path,
        metavar="FILE",
        help="DeschedulerPolicy, see docs/tensile.md (default: pods that are refused for 30 s, without limits)",
    )
    go_values.add_boolean(
        parser, "--dry-run", default=False, help="log the pods that would be evicted, and change nothing"
    )
    parser.add_argument(
        "--descheduling-interval",
        type=go_values.seconds,
        default=60.0,
        metavar="SECONDS",
        help="length of a round, to which the limits of the policy apply (default %(default)g)",
    )
    parser.add_argument(
        "--max-pods-to-evict-per-node",
        type=_count,
        default=0,
        metavar="N",
        help="evictions from a virtual node in a round, if the policy has no limit; 0: no limit (default %(default)s)",
    )
    component_flags.add_version(parser)
    component_flags.add_metrics(parser)
    component_flags.add_leader_election(parser, "--leader-elect-resource-namespace")
    unused_flags.add_to(parser, "tensile-kube's descheduler", upstream_flags.DESCHEDULER)
    log_flags.add_to(parser)
    parser.set_defaults(run=_run, loop_factory=program.new_loop)


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'"{text}" is not a number of pods, such as 5, or 0 for no limit')
    return int(text)


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    await descheduler.run(read(arguments))
    return 0


def read(arguments: argparse.Namespace) -> DeschedulerSettings:
    """The settings given by the flags."""
    found = _policy(arguments.policy_config_file)
    if not found.most_per_node:
        found = dataclasses.replace(found, most_per_node=arguments.max_pods_to_evict_per_node)
    return DeschedulerSettings(
        upper=CredentialSource(arguments.kubeconfig),
        policy=found,
        round_seconds=arguments.descheduling_interval,
        is_dry=arguments.dry_run,
        metrics_address=arguments.metrics_addr,
        election_namespace=component_flags.election_namespace(arguments),
    )


def _policy(path: Path | None) -> Policy:
    if path is None:
        return Policy()
    try:
        return policy.parse(path.read_text(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise HansaError(f"cannot read --policy-config-file {path}: {getattr(error, 'strerror', error)}") from None
