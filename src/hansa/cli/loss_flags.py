"""--lost-after and --fence-grace of vc-scheduler and vc-syncer: when a super cluster of a pool is lost."""

import argparse
from typing import Any

from hansa.cli import go_values
from hansa.tenancy.pool import fence


def add_to(group: Any, *, effect: str) -> None:
    """Add the flags; `effect` is what happens when a super cluster is lost."""
    group.add_argument(
        "--lost-after",
        type=go_values.seconds,
        default=60.0,
        metavar="SECONDS",
        help=f"how long a super cluster may be unreachable before {effect} (default %(default)g)",
    )
    group.add_argument(
        "--fence-grace",
        type=go_values.seconds,
        metavar="SECONDS",
        help="added to --lost-after if super-agent runs there, which deletes the pods first; at least half of"
        f" --lost-after (default {fence.DEFAULT_GRACE:g}, or half of --lost-after if that is longer)",
    )


def fence_grace(arguments: argparse.Namespace) -> float:
    """The value of --fence-grace, or its default."""
    return fence.checked_grace(arguments.lost_after, arguments.fence_grace)
