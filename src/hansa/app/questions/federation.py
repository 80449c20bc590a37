"""Proxy pods of a federation: reads the source cluster, its Targets, and the targets with its credentials for them."""

import asyncio
import contextlib

from hansa.admission import proxy_pods
from hansa.app.questions import reading
from hansa.app.questions.reading import Reader
from hansa.federation import api, summaries, target_credentials
from hansa.federation.api import BadObject, Target
from hansa.federation.binding import proxy, world
from hansa.federation.binding.world import Federation, TargetState
from hansa.kube import errors, resources
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.model import keys
from hansa.model.translation.federation.target_link import TargetLink
from hansa.runtime.errors import HansaError
from hansa.scheduling import explanation
from hansa.scheduling.explanation import Explanation
from hansa.scheduling.watching import listing

MODE = "federation"


async def targets(source: Client) -> list[Target]:
    """The Targets and ClusterTargets of a source that are valid."""
    found = []
    for kind in (api.TARGETS, api.CLUSTER_TARGETS):
        for one in await reading.every(source, kind):
            with contextlib.suppress(BadObject):
                found.append(api.target(one))
    return found


async def read(reader: Reader, source: Client) -> Federation:
    """The source and its targets at this moment."""
    above, known = await asyncio.gather(listing.listed("source", source), targets(source))
    if above.unknown:
        raise HansaError(f"the source cluster cannot be read: {above.unknown}")
    proxies = {pod.uid: pod.key for pod in above.pods.values() if keys.SOURCE_POD in pod.annotations}
    states = await asyncio.gather(*(_target(reader, source, one, proxies) for one in known))
    return Federation(above, {one.link.node: one for one in states})


async def explain(reader: Reader, source: Client, pod: Object) -> Explanation:
    """Explain a proxy pod, or an elected one that would be created."""
    wanted = pod if keys.SOURCE_POD in pod.annotations else Object.of(proxy_pods.proxy(pod.to_dict()))
    federation, events = await asyncio.gather(read(reader, source), reading.events(source, pod))
    cluster, delegate = federation.cluster_of(wanted), federation.copy_of(wanted)
    failure = proxy.failure(wanted, federation.target_of(wanted))
    return Explanation(
        wanted,
        MODE,
        tuple(federation.answers(wanted)),
        cluster=cluster,
        decision=_decision(wanted, cluster),
        below=(
            *(() if delegate is None else (explanation.copy_state(delegate, cluster),)),
            *((f"{cluster} said: {failure}",) if failure else ()),
        ),
        events=explanation.messages(events, times=map(reading.time_of, events)),
    )


def _decision(pod: Object, cluster: str) -> str:
    candidate = pod.annotations.get(keys.CANDIDATE, "")
    chosen = f"hansa agent chose {cluster or candidate}" if candidate else "hansa agent chooses its target"
    return f"{chosen} by the shapes of nodes in ClusterSummaries" + (f" ({keys.CANDIDATE})" if candidate else "")


async def _target(reader: Reader, source: Client, target: Target, proxies: dict[str, NamespacedName]) -> TargetState:
    key = target.key
    link = TargetLink(
        key.name, target.node, key.namespace, is_self=target.is_self, is_leaving=target.object.is_deleting
    )
    if link.is_leaving:
        return TargetState(link, problem=f"{link} is being deleted")
    try:
        client = source if target.is_self else await _connect(reader, source, target)
        summary = await client.get(api.CLUSTER_SUMMARIES, api.SUMMARY)
        pods = client.pages(resources.PODS, namespace=key.namespace, labels=keys.PARENT_UID)
        delegates = [pod async for page in pods for pod in page.items]
    except BadObject as error:
        return TargetState(link, problem=str(error))
    except errors.NotFound:
        return TargetState(link, problem="it has no ClusterSummary: run hansa agent there, too")
    except HansaError as error:
        return TargetState(link, unknown=str(error))
    found = summaries.read(target.node, summary, target.is_excluded)
    ours = {pod.labels[keys.PARENT_UID]: pod for pod in delegates if pod.labels[keys.PARENT_UID] in proxies}
    view = world.with_delegates(found.scheduling, ours.values(), proxies)
    return TargetState(link, view, ours, found.problem)


async def _connect(reader: Reader, source: Client, target: Target) -> Client:
    name = target.secret
    assert name is not None  # of all that are not the source itself
    secret = None
    with contextlib.suppress(errors.NotFound):
        secret = await source.get(resources.SECRETS, name.name, namespace=name.namespace)
    return await reader.client(target_credentials.of(target, target_credentials.checked(target, name, secret)))
