"""Waits until what was installed runs, with progress, and says of what does not why."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Final

from hansa.app.status import workloads
from hansa.app.status.section import conditions
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.runtime.errors import HansaError

POLL_SECONDS: Final = 0.5
KINDS: Final = {one.kind: one for one in (resources.DEPLOYMENTS, resources.DAEMON_SETS)}
DEFINITION: Final = resources.CUSTOM_RESOURCE_DEFINITIONS


async def ready(client: Client, installed: Iterable[Object], *, deadline: float, report: Callable[[str], None]) -> None:
    """Wait until all definitions are served and all pods are ready; raises with the reason of what is not."""
    waiting = [one for one in installed if one.kind in KINDS or one.kind == DEFINITION.kind]
    said: dict[str, str] = {}
    reason: dict[str, str] = {}
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(deadline):
            while True:
                reason = {name: text for one in waiting async for name, text in _missing(client, one)}
                for name, text in reason.items():
                    if said.get(name) != text:
                        report(f"waiting for {name}: {text}")
                said = reason
                if not reason:
                    return
                await asyncio.sleep(POLL_SECONDS)
    why = [f"{name}: {text}{await _detail(client, name, waiting)}" for name, text in reason.items()]
    raise HansaError(f"not ready after {deadline:g} s: {'; '.join(why) or 'the API server did not answer'}")


async def _missing(client: Client, obj: Object) -> AsyncIterator[tuple[str, str]]:
    resource = DEFINITION if obj.kind == DEFINITION.kind else KINDS[obj.kind]
    try:
        found = await client.get(resource, obj.name, namespace=obj.namespace)
    except errors.NotFound:
        yield _named(obj), "it was deleted meanwhile"
        return
    except errors.ApiError as error:
        yield _named(obj), str(error)
        return
    if text := missing(found):
        yield _named(obj), text


def missing(found: Object) -> str:
    """What an object lacks to be ready; "" if nothing."""
    if found.kind == DEFINITION.kind:
        return "" if conditions(found.status).get("Established", {}).get("status") == "True" else "not established"
    status = found.status
    if (status.get("observedGeneration") or 0) < found.metadata.generation:
        return "its controller has not seen it yet"
    ready, wanted = workloads.counts(found)
    is_daemon = found.kind == resources.DAEMON_SETS.kind
    updated = int(status.get("updatedNumberScheduled" if is_daemon else "updatedReplicas") or 0)
    surplus = 0 if is_daemon else int(status.get("replicas") or 0) - wanted
    if ready < wanted or updated < wanted or surplus > 0:
        return f"{min(ready, updated)} of {wanted} pods are ready"
    return ""


async def _detail(client: Client, name: str, waiting: Iterable[Object]) -> str:
    """Why the pods of a workload are not ready, as far as the API says."""
    found = next((one for one in waiting if _named(one) == name and one.kind in KINDS), None)
    if found is None:
        return ""
    labels = (found.spec.get("selector") or {}).get("matchLabels") or {}
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    try:
        pods = await client.list(resources.PODS, namespace=found.namespace, labels=selector)
    except errors.ApiError as error:
        return f" ({error})"
    reasons = dict.fromkeys(text for pod in pods.items for text in reasons_of(pod))
    return f" ({', '.join(reasons)})" if reasons else f' (see "kubectl -n {found.namespace} describe pods")'


def reasons_of(pod: Object) -> Iterator[str]:
    """Why a pod is not ready."""
    scheduled = conditions(pod.status).get("PodScheduled", {})
    if scheduled.get("status") == "False":
        yield f"{scheduled.get('reason')}: {scheduled.get('message')}"
    for one in pod.status.get("containerStatuses") or ():
        state, last = one.get("state") or {}, one.get("lastState") or {}
        for part in (state.get("waiting"), state.get("terminated"), last.get("terminated")):
            if part and part.get("reason") not in (None, "ContainerCreating", "PodInitializing", "Completed"):
                yield ": ".join(str(part[key]).strip() for key in ("reason", "message") if part.get(key))


def _named(obj: Object) -> str:
    return f"{obj.kind} {obj.key}"
