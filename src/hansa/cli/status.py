"""`hansa status`: what Hansa runs in some clusters, how far it is behind, and what is wrong."""

import argparse
import json
from collections.abc import Iterable
from typing import Any

from hansa.app.status import overview
from hansa.app.status.section import ClusterStatus, Section
from hansa.cli import cluster_flags, log_flags, tables
from hansa.runtime.clock import SystemClock

EXAMPLES = """\
examples:
  hansa status
  hansa status --context meta --context r1 --context r2
  hansa status --context meta --metrics 127.0.0.1:8080 -o json

The exit code is 0 if nothing is wrong, and 1 if there are problems. Warning events explain problems, and are none.
"""
NOTHING = "nothing of Hansa found"


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "status",
        help="show components, tenants, super clusters, virtual nodes, targets, and what is wrong with them",
        description="Reads the state of Hansa from the API servers of clusters, without changing anything.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    cluster_flags.add_to(parser)
    parser.add_argument(
        "--metrics",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="--metrics-addr of a program outside of the clusters, whose queues are shown; repeatable (default none)",
    )
    log_flags.add_to(parser)
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    asked = cluster_flags.asked(arguments)
    found = await overview.read(asked, deadline=arguments.timeout, clock=SystemClock(), metrics=arguments.metrics)
    print(_json(found) if arguments.output == "json" else "\n\n".join(map(_text, found)) + "\n" + _summary(found))
    return 1 if any(one.problems for one in found) else 0


def _text(one: ClusterStatus) -> str:
    head = " ".join(filter(None, (f"cluster {one.cluster}", one.version, f"at {one.server}" if one.server else "")))
    if one.unreachable:
        return f"{head}\n  {one.unreachable}"
    tables = [_table(section) for section in one.sections] or [f"  {NOTHING}"]
    return "\n\n".join([head, *tables])


def _table(section: Section) -> str:
    lines = [f"  {section.title}"]
    if section.rows:
        lines += [f"    {line}" for line in tables.lines([section.columns, *(row.cells for row in section.rows)])]
    if section.unread:
        lines.append(f"    {section.unread}")
    return "\n".join(lines)


def _summary(found: Iterable[ClusterStatus]) -> str:
    problems = [f"  {one.cluster}: {problem}" for one in found for problem in one.problems]
    return "\n".join(["", f"problems ({len(problems)})", *problems]) if problems else "\nno problems"


def _json(found: list[ClusterStatus]) -> str:
    problems = [{"cluster": one.cluster, "problem": problem} for one in found for problem in one.problems]
    clusters = [
        {
            "cluster": one.cluster,
            "server": one.server,
            "version": one.version,
            "unreachable": one.unreachable,
            "sections": {section.title: _section(section) for section in one.sections},
        }
        for one in found
    ]
    return json.dumps({"healthy": not problems, "problems": problems, "clusters": clusters}, indent=2)


def _section(section: Section) -> dict[str, Any]:
    names = [column.lower().replace(" ", "-") for column in section.columns]
    items = [dict(zip(names, row.cells, strict=True)) | {"problem": row.problem} for row in section.rows]
    return {"items": items, "unread": section.unread}
