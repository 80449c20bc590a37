"""`hansa explain` and `hansa whatif` for tests, and pods with the changes that an explanation names."""

import asyncio
import copy
import json
import sys
from typing import Any

from hansa.app.questions import explaining
from hansa.cli import main, question_flags
from hansa.kube.language import quantity
from hansa.kube.objects import NamespacedName
from programs import Refused

CLUSTER_SELECTOR = "clusterSelector"  # annotation: the constraints of a pod in lower clusters


async def ask(*words: str) -> Any:
    """The output of a question, parsed."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hansa.cli.main", *words, "-o", "json"), stdout=pipe, stderr=pipe
    )
    out, err = await process.communicate()
    if process.returncode:
        raise Refused(f"hansa {' '.join(words)}: {err.decode()}")
    return json.loads(out)


async def explained(*words: str) -> Any:
    """The output of `hansa explain pod NAMESPACE/NAME`, without a process of its own: for hundreds of pods."""
    arguments = main.parser(("explain",), program="hansa").parse_args(["explain", "pod", *words])
    namespace, _, name = arguments.name.partition("/")
    found = await explaining.pod(question_flags.where(arguments), NamespacedName(namespace, name))
    return json.loads(json.dumps(found.as_json()))


def by_cluster(explained: Any) -> dict[str, Any]:
    """The answers of an explanation."""
    return {one["cluster"]: one for one in explained["answers"]}


def fates(forecast: Any, namespace: str) -> dict[str, tuple[str, str]]:
    """The fate of each pod of a namespace, and the cluster where it would be."""
    pods = [(one["pod"].rpartition("/"), one) for one in forecast["pods"]]
    return {name: (one["fate"], one["then"]) for (space, _, name), one in pods if space.endswith(namespace)}


def changed(pod: dict[str, Any], changes: list[dict[str, Any]]) -> dict[str, Any]:
    """The pod with changes of an explanation. Where a node would need more, the pod requests that much less."""
    found = copy.deepcopy(pod)
    for change in changes:
        spec = found["spec"]
        for taint in change.get("tolerate", ()):
            spec.setdefault("tolerations", []).append({**taint, "operator": "Equal"})
        if "nodes" in change.get("without", ()):
            spec.pop("nodeSelector", None)
            found["metadata"].get("annotations", {}).pop(CLUSTER_SELECTOR, None)
        if {"nodes", "pods"} & set(change.get("without", ())):
            spec.pop("affinity", None)
        requests = spec["containers"][0]["resources"]["requests"]
        for resource, amount in change.get("moreFree", {}).items():
            less = quantity.parse(requests[resource]).nano - quantity.parse(amount).nano
            requests[resource] = str(quantity.Quantity(less, quantity.Format.DECIMAL))
    return found
