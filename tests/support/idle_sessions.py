"""Many idle exec sessions at once, and the memory of a process."""

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from hansa.kube.client import Client

AT_ONCE = 10  # processes that containerd starts at the same time
UPGRADE = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", base64.b64encode(bytes(16)).decode()),
    ("Sec-WebSocket-Protocol", "v5.channel.k8s.io"),
]
PAGE_BYTES = 4096


@contextlib.asynccontextmanager
async def idle_sessions(client: Client, pod: str, number: int) -> AsyncIterator[None]:
    """So many sessions in a pod, such as `default/pods/web`, for as long as the block lasts."""
    command = "command=sh&command=-c&command=echo+begun%3B+exec+sleep+1000000"
    path = f"/api/v1/namespaces/{pod}/exec?{command}&stdout=true"
    slots = asyncio.Semaphore(AT_ONCE)
    async with contextlib.AsyncExitStack() as stack:

        async def open_one() -> None:
            async with slots:
                opened = await client.tunnel("GET", path, headers=UPGRADE)
                stack.callback(opened.close)
                received = b""
                while b"begun" not in received:  # an API server answers before it calls the kubelet
                    more = await opened.read()
                    assert more, received
                    received += more

        await asyncio.gather(*(open_one() for _ in range(number)))
        yield


def resident_mb(pid: int) -> float:
    """The resident memory of a process, in MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_BYTES / 1e6
