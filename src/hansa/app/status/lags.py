"""How far programs are behind: the keys that wait in their queues, from their metrics.

Of pods they are read through the API server; of programs outside of the cluster at addresses that the user gives.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import prometheus_client.parser

from hansa.app.program import agent
from hansa.app.status import workloads
from hansa.app.status.reading import Reader
from hansa.app.status.section import Row, Section, age
from hansa.kube import resources
from hansa.kube.credentials import Credentials
from hansa.kube.credentials.login import Login
from hansa.kube.objects import Object
from hansa.kube.server import Server
from hansa.runtime import tasks
from hansa.runtime.errors import HansaError

TITLE: Final = "lags"
COLUMNS: Final = ("PROGRAM", "WAITING KEYS", "LONGEST WORK")
CONCURRENT: Final = 16  # pods that are read at a time
MOST_PODS: Final = 100
SHARE: Final = 0.5  # of the deadline of the topic, for each program
UNKNOWN: Final = "unknown"
STUCK_SECONDS: Final = 900.0  # longer than any deadline of a reconcile
_DEPTH, _WORK = "hansa_queue_depth", "hansa_queue_longest_work_seconds"
_PORT: Final = re.compile(r"--metrics-addr[= ]\S*:(\d+)(?!\S)")


async def read(reader: Reader) -> Section:
    """The lags of the pods that run our image."""

    async def one(found: tuple[Object, str]) -> Row:
        pod, port = found
        path = f"{resources.PODS.path(f'{pod.name}:{port}', namespace=pod.namespace, subresource='proxy')}/metrics"
        try:
            return await _row(str(pod.key), reader.client, path, reader.deadline * SHARE)
        except (HansaError, ValueError):
            return Row((str(pod.key), UNKNOWN, UNKNOWN))  # no problem: a NetworkPolicy may allow the scraper only

    rows = await tasks.gather(one, (await _pods(reader))[:MOST_PODS], at_most=CONCURRENT)
    return Section(TITLE, COLUMNS, tuple(rows))


async def of_address(address: str, *, deadline: float) -> Row:
    """The lag of a program that serves its metrics at HOST:PORT."""
    login = Login(server=f"http://{address}", origin="--metrics", server_origin="--metrics")
    try:
        async with Server(Credentials(lambda: login), user_agent=agent("status"), deadline=deadline) as server:
            return await _row(address, server, "/metrics", deadline)
    except (HansaError, ValueError) as error:
        return Row((address, UNKNOWN, UNKNOWN), str(error))


async def _row(name: str, server: Server, path: str, deadline: float) -> Row:
    doing = f"read metrics of {name}"
    answer = await server.request("GET", path, doing=doing, accept="text/plain", deadline=deadline)
    depth, work = figures(answer.body.decode(errors="replace"))
    problem = f"a reconcile has not ended for {age(work)}; see the log of the program" if work > STUCK_SECONDS else ""
    return Row((name, f"{depth:g}", age(work)), problem)


def figures(text: str) -> tuple[float, float]:
    """The number of waiting keys, and the seconds of the longest running reconcile, from a page of metrics."""
    families = prometheus_client.parser.text_string_to_metric_families(text)
    samples = [one for family in families if family.name in (_DEPTH, _WORK) for one in family.samples]
    depth = sum(one.value for one in samples if one.name == _DEPTH)
    return depth, max((one.value for one in samples if one.name == _WORK), default=0.0)


async def _pods(reader: Reader) -> list[tuple[Object, str]]:
    found: list[tuple[Object, str]] = []
    for workload in (await workloads.found_in(reader)).items:
        port = metrics_port(workload)
        labels = (workload.spec.get("selector") or {}).get("matchLabels") or {}
        if port and labels:
            pods = await reader.list(resources.PODS, namespace=workload.namespace, labels=_selector(labels))
            found += [(pod, port) for pod in pods.items if pod.status.get("phase") == "Running"]
    return found


def metrics_port(workload: Object) -> str:
    """The port of --metrics-addr; "" if it has none."""
    words = " ".join(str(word) for one in workloads.containers(workload) for word in _words(one))
    found = _PORT.search(words)
    return found[1] if found else ""


def _words(container: Mapping[str, object]) -> Iterable[object]:
    for name in ("command", "args"):
        words = container.get(name)
        yield from words if isinstance(words, list) else ()


def _selector(labels: Mapping[str, str]) -> str:
    return ",".join(f"{name}={value}" for name, value in labels.items())
