"""`hansa explain`: where a pod is and fits, what refuses it elsewhere, and what would make it fit."""

import argparse
import json
from pathlib import Path
from typing import Any

import yaml

from hansa.app.questions import explaining
from hansa.cli import log_flags, question_flags, tables
from hansa.kube.errors import Invalid
from hansa.kube.objects import NamespacedName, Object
from hansa.model import pod_manifest
from hansa.runtime.errors import HansaError
from hansa.scheduling.explanation import Explanation
from hansa.scheduling.forecasting.namespace_answers import NamespaceExplanation

EXAMPLES = """\
examples:
  hansa explain pod shop/web-1 --config multi-scheduler-config.json
  hansa explain pod --pod-file new.yaml --config multi-scheduler-config.json -o json
  hansa explain pod shop/web-1 --context cluster1
  hansa explain pod shop/web-1 --kubeconfig vc-1.kubeconfig --meta-cluster-kubeconfig meta.kubeconfig
  hansa explain namespace shop --kubeconfig vc-1.kubeconfig --meta-cluster-kubeconfig meta.kubeconfig
"""


def add_to(commands: Any) -> None:
    """Add the subcommand."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "explain",
        help="explain where a pod is and why, what other clusters say, and what would make it fit",
        description="Reads a pod and the clusters where it may run, and decides as the schedulers do, without changing"
        " anything.\nVirtual nodes need --config, tenants --meta-cluster-kubeconfig or --meta-context; the targets of a"
        "\nfederation are found.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "kind", choices=["pod", "namespace"], help="what to explain; a namespace by its slices in a pool"
    )
    parser.add_argument("name", nargs="?", default="", metavar="[NAMESPACE/]NAME", help="its name")
    parser.add_argument("--pod-file", type=Path, metavar="FILE", help="the manifest of a pod that may not exist yet")
    question_flags.add_to(parser, of="the cluster with the pod")
    question_flags.add_tenant(parser)
    parser.set_defaults(run=_run)


async def _run(arguments: argparse.Namespace) -> int:
    log_flags.apply(arguments)
    where = question_flags.where(arguments)
    if arguments.kind == "namespace":
        slices = await explaining.namespace(where, _namespace(arguments))
        print(json.dumps(slices.as_json(), indent=2) if arguments.output == "json" else _slices_text(slices))
        return 0
    explained = await explaining.pod(where, _wanted(arguments))
    print(json.dumps(explained.as_json(), indent=2) if arguments.output == "json" else text(explained))
    return 0


def _namespace(arguments: argparse.Namespace) -> str:
    if not arguments.name or arguments.pod_file or "/" in arguments.name:
        raise HansaError("give the name of a namespace")
    name: str = arguments.name
    return name


def _slices_text(found: NamespaceExplanation) -> str:
    rows = [("CLUSTER", "SLICES", "STATE"), *((one.cluster, str(one.slices), str(one)) for one in found.clusters)]
    return "\n".join([*found.lines(), "", *tables.lines(rows)])


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
        pod = Object.of(pod_manifest.as_stored(described) if isinstance(described, dict) else {})
    except (OSError, UnicodeDecodeError, yaml.YAMLError, Invalid) as error:
        raise HansaError(f"cannot read --pod-file {path}: {' '.join(str(error).split())}") from None
    if pod.kind != "Pod":
        raise HansaError(f'--pod-file {path} has kind "{pod.kind}", not Pod')
    return pod if pod.namespace else pod.with_metadata(namespace="default")


def text(explained: Explanation) -> str:
    """The explanation for people."""
    rows = [("CLUSTER", "NODE", "ANSWER"), *((one.cluster, one.node, str(one)) for one in explained.answers)]
    remedy = [f"it {explained.remedy}"] if explained.remedy else []
    notes = [f"- {line}" for line in (explained.decision, *explained.below, *explained.events, *remedy) if line]
    return "\n".join([f"pod {explained.pod.key} {explained.placed}", *notes, "", *tables.lines(rows)])
