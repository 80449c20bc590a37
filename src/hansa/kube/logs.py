"""Reads container logs, as bytes or lines. A followed log has no read deadline; TCP keep-alive detects a dead peer."""

import contextlib
from collections.abc import AsyncGenerator

from hansa.kube.client import Client
from hansa.kube.http.lines import Lines
from hansa.kube.http.transport import Stream
from hansa.kube.resources import PODS


async def open_log(
    client: Client,
    pod: str,
    *,
    namespace: str,
    container: str = "",
    follow: bool = False,
    previous: bool = False,
    timestamps: bool = False,
    tail: int | None = None,
    since: int | None = None,
) -> Stream:
    """A container's log: its last `tail` lines, or those of the last `since` seconds, or all. Close it at the end."""
    query = {
        "container": container,
        "follow": "true" if follow else "",
        "previous": "true" if previous else "",
        "timestamps": "true" if timestamps else "",
        "tailLines": "" if tail is None else str(tail),
        "sinceSeconds": "" if since is None else str(since),
    }
    path = PODS.path(pod, namespace=namespace, subresource="log")
    return await client.open(path, doing=f"read the log of pod {namespace}/{pod}", query=query)


async def lines(stream: Stream) -> AsyncGenerator[bytes, None]:
    """The lines of a log, without their newlines; closes it."""
    with contextlib.closing(stream):
        source = Lines(stream)
        while batch := await source.batch():
            for line in batch:
                yield line.removesuffix(b"\n")
        if rest := source.rest():
            yield rest
