"""`hansa doctor`: what keeps Hansa from working in some clusters, why it matters, and how to fix it."""

import argparse
import json
import textwrap
from collections.abc import Iterable
from typing import Any

from hansa.app.doctor import examination, finding, rights
from hansa.app.doctor.finding import Examined, Finding, Level
from hansa.cli import cluster_flags, log_flags
from hansa.runtime.clock import SystemClock
from hansa.runtime.errors import HansaError

EXAMPLES = """\
examples:
  hansa doctor
  hansa doctor --context meta --context r1 -o json
  hansa doctor --kubeconfig syncer.kubeconfig --component vc-syncer

The exit code is 0 if nothing is broken, and 1 if there are problems. Warnings are what may break tomorrow, and
unknown is what could not be examined.
"""
WIDTH = 110


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "doctor",
        help="find what keeps Hansa from working, and say how to fix it",
        description="Examines permissions, reachability, versions, clocks, certificates, webhooks, DNS and network"
        " policy of clusters, without changing anything.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    cluster_flags.add_to(parser)
    parser.add_argument(
        "--component",
        metavar="NAME",
        default="",
        help="examine whether the credentials given have the rights of this component (default: examine the service"
        " accounts that exist)",
    )
    log_flags.add_to(parser)
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    if arguments.component not in ("", *(known := rights.components())):
        raise HansaError(f'--component "{arguments.component}" is not known: use one of {", ".join(known)}')
    asked = cluster_flags.asked(arguments)
    found = await examination.examine(
        asked, deadline=arguments.timeout, clock=SystemClock(), component=arguments.component
    )
    print(_json(found) if arguments.output == "json" else "\n\n".join(map(_text, found)))
    return 1 if any(one.has_problem for one in found) else 0


def _text(one: Examined) -> str:
    head = f"cluster {one.cluster}" + (f" at {one.server}" if one.server else "")
    order = list(Level)
    lines = [line for found in sorted(one.findings, key=lambda each: order.index(each.level)) for line in _lines(found)]
    counts = ", ".join(f"{finding.count(one.findings, level)} {level}" for level in reversed(order))
    return "\n".join([head, *lines, f"  {counts}"])


def _lines(one: Finding) -> Iterable[str]:
    yield from _wrapped(f"  {one.level:<8} {one.check}: {one.what}", 11)
    if one.level is not Level.OK:
        yield from _wrapped(f"{'':11}why: {one.why}", 16)
        yield from _wrapped(f"{'':11}fix: {one.remedy}", 16)


def _wrapped(text: str, indent: int) -> list[str]:
    below = " " * indent
    return textwrap.wrap(text, WIDTH, subsequent_indent=below, break_long_words=False, break_on_hyphens=False)


def _json(found: list[Examined]) -> str:
    clusters = [
        {"cluster": one.cluster, "server": one.server, "findings": [_plain(each) for each in one.findings]}
        for one in found
    ]
    return json.dumps({"healthy": not any(one.has_problem for one in found), "clusters": clusters}, indent=2)


def _plain(one: Finding) -> dict[str, str]:
    return {
        "check": one.check,
        "level": str(one.level),
        "what": one.what,
        "why": one.why,
        "remedy": one.remedy,
    }
