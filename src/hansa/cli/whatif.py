"""`hansa whatif`: what would move, and what would stay Pending, if a cluster, a node or a quota changed."""

import argparse
import json
from collections.abc import Iterable, Iterator
from typing import Any

from hansa.app.questions import forecasting
from hansa.app.questions.forecasting import Mode
from hansa.cli import log_flags, question_flags, tables
from hansa.runtime.errors import HansaError
from hansa.scheduling.forecasting import changes
from hansa.scheduling.forecasting.changes import Change, Lose
from hansa.scheduling.forecasting.forecast import Fate, Forecast, Outcome

EXAMPLES = """\
examples:
  hansa whatif --lose large --config multi-scheduler-config.json
  hansa whatif --drain small/node-3 --add-node large=cpu=8,memory=32Gi --config multi-scheduler-config.json
  hansa whatif --lose c2 --context cluster1
  hansa whatif --lose r1 --quota shop=cpu=4,memory=8Gi --kubeconfig meta.kubeconfig -o json
"""


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "whatif",
        help="forecast what would move and what would stay pending after a loss, a drain, a new node or a quota",
        description="Reads all clusters once, and decides about a copy as the schedulers do, without changing anything."
        " Several\nchanges are forecast together. Virtual nodes need --config; a pool is found in its meta cluster, a"
        "\nfederation in its source.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for flag, metavar, text in (
        ("--lose", "CLUSTER", "a cluster is cut off for good"),
        ("--add-node", "CLUSTER=cpu=8,memory=32Gi", "a cluster gets one more node, without labels and taints"),
        ("--drain", "CLUSTER/NODE", "a node is cordoned and its pods are evicted"),
        ("--quota", "NAMESPACE=cpu=4,memory=8Gi", "pool: the quota of a tenant's namespace changes"),
    ):
        parser.add_argument(flag, action="append", default=[], metavar=metavar, help=f"{text} (may be repeated)")
    parser.add_argument(
        "--mode", choices=list(Mode), default=Mode.AUTO, help="what is forecast (default %(default)s: what is found)"
    )
    question_flags.add_to(parser, of="the upper, source or meta cluster")
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    found = await forecasting.whatif(question_flags.where(arguments), wanted(arguments), Mode(arguments.mode))
    print(json.dumps(found.as_json(), indent=2) if arguments.output == "json" else text(found))
    return 0


def wanted(arguments: argparse.Namespace) -> list[Change]:
    """The changes that the flags name."""
    found: list[Change] = [
        *map(Lose, arguments.lose),
        *map(changes.drain, arguments.drain),
        *map(changes.add_node, arguments.add_node),
        *map(changes.quota, arguments.quota),
    ]
    if not found:
        raise HansaError("give at least one of --lose, --add-node, --drain and --quota")
    return found


def text(found: Forecast) -> str:
    """The forecast for people."""
    counts = {fate: len(found.of(fate)) for fate in Fate}
    shown = ", ".join(f"{count} {_SHOWN[fate]}" for fate, count in counts.items() if count)
    lines = [f"{shown or 'no pod changes'}; {found.unaffected} run on as before"]
    lines += [f"unknown: {cluster}: {reason}" for cluster, reason in found.unknown.items()]
    if found.slices:
        rows = [("NAMESPACE", "SLICES NOW", "THEN", "REASON")]
        rows += [(one.namespace, _placed(one.now), _placed(one.then), one.reason) for one in found.slices]
        lines += ["", *tables.lines(rows)]
    if found.outcomes:
        lines += ["", *tables.lines([("POD", "FATE", "NOW", "THEN", "REASON"), *_rows(found.outcomes)])]
    return "\n".join(lines)


def _rows(outcomes: Iterable[Outcome]) -> Iterator[tuple[str, ...]]:
    """A row for each pod; one for all of a namespace with the same fate."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for one in outcomes:
        namespace = one.pod.rpartition("/")[0]
        alike.setdefault((namespace, one.fate, one.now, one.then, one.reason), []).append(one.pod)
    for (_, fate, now, then, reason), pods in alike.items():
        shown = pods[0] if len(pods) == 1 else f"{pods[0]} and {len(pods) - 1} more"
        yield shown, fate, now or "pending", then or "-", reason


_SHOWN = {
    Fate.MOVES: "would move",
    Fate.STARTS: "would start",
    Fate.PENDS: "would be pending",
    Fate.ENDS: "would end",
    Fate.STAYS: "would stay where they are lost",
    Fate.UNKNOWN: "cannot be forecast",
}


def _placed(slices: Any) -> str:
    return ",".join(f"{name}={number}" for name, number in sorted(slices.items())) or "none"
