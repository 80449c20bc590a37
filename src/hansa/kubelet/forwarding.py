"""Forwards a call to the API server of the lower cluster: a log as a stream, an upgraded connection byte for byte."""

import asyncio
import contextlib
from collections.abc import Iterable

from hansa.kube import errors, streams
from hansa.kube.objects import NamespacedName
from hansa.kube.streams import Pace
from hansa.kubelet.exchange import Exchange
from hansa.kubelet.pods import LowerPod
from hansa.kubelet.refusal import Refusal
from hansa.kubelet.routes import Call
from hansa.runtime import tasks

# Headers of an upgrade that both sides of the tunnel have to agree on.
_ASKED = frozenset({"connection", "upgrade", "x-stream-protocol-version"})
_WEB_SOCKET = "sec-websocket-"


async def forward(call: Call, pod: LowerPod, exchange: Exchange, *, pace: Pace = streams.unpaced) -> None:
    """Answer a call about this pod. Raises a Refusal if the lower cluster refuses it. `pace` limits its bandwidth."""
    target = pod.target(call)
    doing = f"forward {call.action} of pod {call.namespace}/{call.pod}"
    try:
        if call.action.is_upgrade:
            await _tunnel(target, doing, pod, exchange, pace)
        else:
            await _stream(target, doing, pod, exchange, pace, follows=call.follows)
    except errors.ApiError as error:
        raise refusal(error, pod.cluster, _upper_names(error.said, call, pod.name)) from None


async def _stream(target: str, doing: str, pod: LowerPod, exchange: Exchange, pace: Pace, *, follows: bool) -> None:
    """Copy the answer until it ends or the caller leaves."""
    left = asyncio.create_task(exchange.closed())
    copied = asyncio.create_task(_copy(target, doing, pod, exchange, pace, follows=follows))
    try:
        await asyncio.wait({left, copied}, return_when=asyncio.FIRST_COMPLETED)
        if copied.done():
            copied.result()
    finally:
        await tasks.cancel(left, copied)


async def _copy(target: str, doing: str, pod: LowerPod, exchange: Exchange, pace: Pace, *, follows: bool) -> None:
    """The head of a followed log has no deadline: a kubelet sends it with the first line, which may be much later."""
    with contextlib.closing(await pod.client.open(target, doing=doing, has_deadline=not follows)) as stream:
        await exchange.start()
        while data := await stream.read():
            await pace(len(data))
            await exchange.send(data)
        await exchange.end()


async def _tunnel(target: str, doing: str, pod: LowerPod, exchange: Exchange, pace: Pace) -> None:
    """Have the lower API server switch protocols, then the caller; copy bytes until one of them closes."""
    if not exchange.header("upgrade"):
        raise Refusal(400, "unable to upgrade: the request has no header Upgrade")
    tunnel = await pod.client.tunnel(exchange.method, target, headers=of_upgrade(exchange.headers), doing=doing)
    try:
        early = await exchange.upgrade(of_upgrade(tunnel.headers.items()))
        if early:
            await tunnel.write(early)
        await streams.splice(tunnel, exchange.reader, exchange.writer, pace=pace)
    finally:
        tunnel.close()


def of_upgrade(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """The headers that are passed on, in both directions; credentials are never among them."""
    return [(name, value) for name, value in headers if _is_of_upgrade(name.lower())]


def _is_of_upgrade(name: str) -> bool:
    return name in _ASKED or name.startswith(_WEB_SOCKET)


def refusal(error: errors.ApiError, cluster: str, said: str) -> Refusal:
    """The sentence of the lower API server; where our own rights are missing, the caller's are not in question."""
    match error:
        case errors.Unreachable(code=0):  # with a code it has an answer, such as that a container is not running
            return Refusal(502, f"cluster {cluster} cannot be reached; try again")
        case errors.Denied():
            return Refusal(502, f"cluster {cluster} does not allow it: {said}")
    return Refusal(error.code or 502, said)


def _upper_names(sentence: str, call: Call, lower: NamespacedName) -> str:
    """A sentence of the lower cluster in the names that the caller knows."""
    return sentence.replace(lower.namespace, call.namespace).replace(lower.name, call.pod)
