"""The flags that decide about slices: of `hansa vc-scheduler`, and of the commands that answer for it."""

import argparse

from hansa.cli import go_values
from hansa.scheduling.slicing import policies, pool, slices
from hansa.scheduling.slicing.annotations import PoolSettings
from hansa.scheduling.slicing.pool import Headroom


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    parser.add_argument(
        "--slice",
        default="",
        metavar="JSON",
        help='slice of namespaces without a slice annotation (default {"cpu":"2","memory":"4Gi"})',
    )
    parser.add_argument(
        "--policy",
        default="spread",
        help='placement policy of slices: spread, pack, or "prefer region=eu:10; …" (default %(default)s)',
    )
    parser.add_argument(
        "--headroom",
        default="",
        metavar="AMOUNT",
        help='capacity of each super cluster to keep free, e.g. "10%%" or "cpu=2,memory=4Gi" (default none)',
    )
    go_values.add_boolean(
        parser,
        "--all-or-nothing",
        default=False,
        help="place a namespace only if all of its slices fit, instead of those that fit",
    )
    go_values.add_boolean(
        parser, "--evict", default=False, help="when a quota shrinks, remove slices with running pods, too"
    )


def placing(arguments: argparse.Namespace) -> PoolSettings:
    """The defaults of namespaces."""
    return PoolSettings(
        slice=slices.parse(arguments.slice) if arguments.slice else slices.DEFAULT,
        policy=policies.parse(arguments.policy),
        may_be_partial=not arguments.all_or_nothing,
        may_evict=arguments.evict,
    )


def headroom(arguments: argparse.Namespace) -> Headroom:
    """The headroom of super clusters without the annotation."""
    return pool.headroom(arguments.headroom)
