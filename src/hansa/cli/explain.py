"""`hansa explain`: where a pod fits, what refuses it elsewhere, and what would make it fit."""

import argparse
import json
from pathlib import Path
from typing import Any

import yaml

from hansa.app import explain
from hansa.app.explain import Explained
from hansa.cli import log_flags, multi_scheduler
from hansa.kube.errors import Invalid
from hansa.kube.objects import NamespacedName, Object
from hansa.modes.multi_scheduler_settings import MultiSchedulerSettings
from hansa.runtime.errors import HansaError

EXAMPLES = """\
examples:
  hansa explain pod shop/web-1 --config multi-scheduler-config.json
  hansa explain pod --pod-file new.yaml --config multi-scheduler-config.json -o json
"""


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "explain",
        help="explain where a pod fits in lower clusters, and what would make it fit (tensile)",
        description="Reads the pod, the virtual nodes and their clusters, and decides as hansa multi-scheduler does,\n"
        "without changing anything.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("kind", choices=["pod"], help="what to explain")
    parser.add_argument("name", nargs="?", default="", metavar="NAMESPACE/NAME", help="the pod")
    parser.add_argument("--pod-file", type=Path, metavar="FILE", help="the manifest of a pod that may not exist yet")
    multi_scheduler.add_clusters(parser)
    parser.add_argument(
        "-o", "--output", choices=["text", "json"], default="text", help="output format (default %(default)s)"
    )
    log_flags.add_to(parser)
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    settings: MultiSchedulerSettings = multi_scheduler.clusters(arguments)
    explained = await explain.explain(settings, _wanted(arguments))
    print(_json(explained) if arguments.output == "json" else _text(explained))
    return 0


def _wanted(arguments: argparse.Namespace) -> Object | NamespacedName:
    if bool(arguments.name) is bool(arguments.pod_file):
        raise HansaError("give either NAMESPACE/NAME or --pod-file")
    if arguments.pod_file:
        return _from_file(arguments.pod_file)
    namespace, slash, name = arguments.name.partition("/")
    return NamespacedName(namespace, name) if slash else NamespacedName("default", namespace)


def _from_file(path: Path) -> Object:
    try:
        described = yaml.safe_load(path.read_text())
        pod = Object.of(described if isinstance(described, dict) else {})
    except (OSError, UnicodeDecodeError, yaml.YAMLError, Invalid) as error:
        raise HansaError(f"cannot read --pod-file {path}: {error}") from None
    if pod.kind != "Pod":
        raise HansaError(f'--pod-file {path} has kind "{pod.kind}", not Pod')
    return pod if pod.namespace else pod.with_metadata(namespace="default")


def _text(explained: Explained) -> str:
    rows = [("CLUSTER", "NODE", "ANSWER"), *((one.cluster, one.node, str(one)) for one in explained.answers)]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = [f"{row[0]:<{widths[0]}}   {row[1]:<{widths[1]}}   {row[2]}" for row in rows]
    return "\n".join([f"pod {explained.pod.key} {explain.placed(explained.pod)}", "", *lines])


def _json(explained: Explained) -> str:
    pod = explained.pod
    return json.dumps(
        {
            "pod": str(pod.key),
            "node": pod.spec.get("nodeName", ""),
            "placed": explain.placed(pod),
            "answers": [one.as_json() for one in explained.answers],
        },
        indent=2,
    )
