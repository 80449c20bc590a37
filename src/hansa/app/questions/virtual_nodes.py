"""Pods on virtual nodes: reads the upper cluster and the clusters behind its virtual nodes."""

import asyncio
from collections.abc import Container

from hansa.admission import configuration, constraint_split, constraints, exemption
from hansa.app.questions import reading
from hansa.app.questions.reading import Reader, Where
from hansa.kube import errors
from hansa.kube.client import Client
from hansa.kube.objects import Object
from hansa.model import keys
from hansa.modes import multi_scheduler_settings
from hansa.runtime.errors import HansaError
from hansa.scheduling import explanation
from hansa.scheduling.explanation import Explanation
from hansa.scheduling.forecasting.virtual_nodes import ORDINARY, VirtualNodes
from hansa.scheduling.watching import listing

MODE = "virtual nodes"


async def read(reader: Reader, upper: Client, where: Where) -> VirtualNodes:
    """All clusters at this moment."""
    above, *below = await asyncio.gather(
        listing.listed("upper", upper), *(reader.snapshot(name, source) for name, source in where.lowers.items())
    )
    if above.unknown:
        raise HansaError(f"the upper cluster cannot be read: {above.unknown}")
    found = VirtualNodes(
        above,
        {one.name: one for one in below},
        multi_scheduler_settings.lower_of,
        multi_scheduler_settings.request_of,
    )
    if not found.nodes:
        raise HansaError('no virtual node of a cluster in --config exists; see "hansa virtual-node --help"')
    return found


async def explain(reader: Reader, upper: Client, where: Where, wanted: Object) -> Explanation:
    """Explain a pod that exists, or one that would be created."""
    world, events, is_mutated = await asyncio.gather(
        read(reader, upper, where), reading.events(upper, wanted), _has_webhook(upper)
    )
    if is_mutated and not wanted.uid:
        wanted = as_admitted(wanted, world.upper.nodes)
    cluster, copy = world.cluster_of(wanted), world.copy_of(wanted)
    return Explanation(
        wanted,
        MODE,
        tuple(world.answers(wanted)),
        cluster="" if cluster == ORDINARY else cluster,
        decision=_decision(wanted),
        below=() if copy is None else (explanation.copy_state(copy, cluster),),
        events=explanation.messages(events, times=map(reading.time_of, events)),
    )


def as_admitted(pod: Object, nodes: Container[str]) -> Object:
    """A new pod as `hansa webhook`, with its default flags, makes it: with its constraints on lower nodes parked."""
    described = pod.to_dict()
    if exemption.is_exempt(described, pod.namespace):
        return pod
    upper = constraint_split.UpperNodes(is_node=nodes.__contains__)
    return Object.of(constraints.move_constraints(described, upper))


async def _has_webhook(upper: Client) -> bool:
    """Whether new pods go through `hansa webhook`; assumed where that may not be read, as it is the usual set-up."""
    try:
        found = await reading.every(upper, configuration.RESOURCE)
    except errors.Denied:
        return True
    return any(hook.get("name") == configuration.WEBHOOK for one in found for hook in one.get("webhooks") or ())


def _decision(pod: Object) -> str:
    """Who chose its node, or will."""
    scheduler = pod.spec.get("schedulerName", "default-scheduler")
    parked = pod.annotations.get(keys.CLUSTER_SELECTOR, "")
    below = f"; in lower clusters the constraints {parked} apply" if parked else ""
    avoided = pod.annotations.get(keys.AVOIDS, "")
    avoids = f"; it avoids {avoided}, which refused pods of its owner" if avoided else ""
    return f"the node is chosen by scheduler {scheduler} in the upper cluster{below}{avoids}"
