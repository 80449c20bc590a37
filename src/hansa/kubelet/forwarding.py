"""Forwards a call to the API server of the lower cluster: a log as a stream, an upgraded connection byte for byte."""

import asyncio
import contextlib
from collections.abc import Iterable

from hansa.kube import errors, streams
from hansa.kube.objects import NamespacedName
from hansa.kubelet.exchange import Exchange
from hansa.kubelet.pods import LowerPod
from hansa.kubelet.refusal import Refusal
from hansa.kubelet.routes import Call
from hansa.runtime import tasks

# Headers of an upgrade that both sides of the tunnel have to agree on; credentials are never among them.
_ASKED = frozenset({"connection", "upgrade", "x-stream-protocol-version"})
_WEB_SOCKET = "sec-websocket-"


async def forward(call: Call, pod: LowerPod, exchange: Exchange) -> None:
    """Answer a call about this pod. Raises a Refusal if the lower cluster refuses it."""
    target = call.target(pod.name.namespace, pod.name.name)
    doing = f"forward {call.action} of pod {call.namespace}/{call.pod}"
    try:
        if call.action.is_upgrade:
            await _tunnel(target, doing, pod, exchange)
        else:
            await _stream(target, doing, pod, exchange, follows=call.follows)
    except errors.ApiError as error:
        raise _refusal(error, call, pod) from None


async def _stream(target: str, doing: str, pod: LowerPod, exchange: Exchange, *, follows: bool) -> None:
    """Copy the answer until it ends or the caller leaves."""
    left = asyncio.create_task(exchange.closed())
    copied = asyncio.create_task(_copy(target, doing, pod, exchange, follows=follows))
    try:
        await asyncio.wait({left, copied}, return_when=asyncio.FIRST_COMPLETED)
        if copied.done():
            copied.result()
    finally:
        await tasks.cancel(left, copied)


async def _copy(target: str, doing: str, pod: LowerPod, exchange: Exchange, *, follows: bool) -> None:
    """The head of a followed log has no deadline: a kubelet sends it with the first line, which may be much later."""
    with contextlib.closing(await pod.client.open(target, doing=doing, has_deadline=not follows)) as stream:
        await exchange.start()
        while data := await stream.read():
            await exchange.send(data)
        await exchange.end()


async def _tunnel(target: str, doing: str, pod: LowerPod, exchange: Exchange) -> None:
    """Have the lower API server switch protocols, then the caller; copy bytes until one of them closes."""
    if not exchange.header("upgrade"):
        raise Refusal(400, "unable to upgrade: the request has no header Upgrade")
    asked = [(name, value) for name, value in exchange.headers if _is_of_upgrade(name)]
    tunnel = await pod.client.tunnel(exchange.method, target, headers=asked, doing=doing)
    try:
        early = await exchange.upgrade(_answered(tunnel.headers.items()))
        if early:
            await tunnel.write(early)
        await streams.splice(tunnel, exchange.reader, exchange.writer)
    finally:
        tunnel.close()


def _answered(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if _is_of_upgrade(name.lower())]


def _is_of_upgrade(name: str) -> bool:
    return name in _ASKED or name.startswith(_WEB_SOCKET)


def _refusal(error: errors.ApiError, call: Call, pod: LowerPod) -> Refusal:
    """The sentence of the lower API server; where our own rights are missing, the caller's are not in question."""
    said = _upper_names(error.said, call, pod.name)
    match error:
        case errors.Unreachable():
            return Refusal(502, f"cluster {pod.cluster} cannot be reached; try again")
        case errors.Denied():
            return Refusal(502, f"cluster {pod.cluster} does not allow it: {said}")
    return Refusal(error.code or 502, said)


def _upper_names(sentence: str, call: Call, lower: NamespacedName) -> str:
    """A sentence of the lower cluster in the names that the caller knows."""
    return sentence.replace(str(lower), f"{call.namespace}/{call.pod}").replace(lower.name, call.pod)
