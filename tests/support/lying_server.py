"""An API server that a tenant brings, and that lies: its watches invent new objects without an end."""

import asyncio
import contextlib
import itertools
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import yaml

from scripted_server import request_head, serving

KINDS = {"configmaps": "ConfigMap", "secrets": "Secret", "services": "Service", "pods": "Pod", "endpoints": "Endpoints"}
AT_ONCE = 200  # events
INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}
CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


class LyingServer:
    """It floods the watches of KINDS, once it `floods`; `sent` is how many events it got rid of."""

    def __init__(self) -> None:
        self.floods, self.sent = asyncio.Event(), 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        while True:
            head = (await request_head(reader)).decode()
            path, headers = head.split()[1], head.lower()
            if "content-length: " in headers:
                await reader.readexactly(int(headers.split("content-length: ")[1].split("\r\n")[0]))
            if "watch=1" in path:
                await self._watch(path.partition("?")[0].rpartition("/")[2], writer)
            status, answer = 404, {"kind": "Status", "apiVersion": "v1", "code": 404, "reason": "NotFound"}
            if path.startswith("/readyz"):
                status, answer = 200, {}
            elif path.partition("?")[0].endswith("/namespaces/kube-system"):
                status, answer = 200, _object("Namespace", "kube-system", "", 1)
            body = json.dumps(answer).encode()
            writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    async def _watch(self, plural: str, writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED)
        end = {"metadata": {"resourceVersion": "2", "annotations": INITIAL_EVENTS_END}}
        first = [("ADDED", _object("Namespace", "default", "", 1))] if plural == "namespaces" else []
        _send(writer, *first, ("BOOKMARK", end))
        numbers = itertools.count(10)
        await self.floods.wait()
        while plural in KINDS:
            made = ((number, f"flood-{number}") for number in itertools.islice(numbers, AT_ONCE))
            _send(writer, *(("ADDED", _object(KINDS[plural], name, "default", number)) for number, name in made))
            self.sent += AT_ONCE
            await writer.drain()
        await asyncio.get_running_loop().create_future()


@contextlib.asynccontextmanager
async def lying(folder: Path) -> AsyncIterator[tuple[LyingServer, Path]]:
    """A server for as long as the block lasts, and the path of its kubeconfig."""
    server = LyingServer()
    async with serving(server.serve) as port:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "liar",
            "clusters": [{"name": "liar", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
            "users": [{"name": "liar", "user": {"token": "any"}}],
            "contexts": [{"name": "liar", "context": {"cluster": "liar", "user": "liar"}}],
        }
        path = folder / "liar.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        yield server, path


def _object(kind: str, name: str, namespace: str, version: int) -> dict[str, Any]:
    metadata = {"namespace": namespace, "name": name, "uid": f"{kind}-{name}", "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata}


def _send(writer: asyncio.StreamWriter, *events: tuple[str, dict[str, Any]]) -> None:
    lines = b"".join(json.dumps({"type": kind, "object": obj}).encode() + b"\n" for kind, obj in events)
    writer.write(b"%x\r\n%s\r\n" % (len(lines), lines))
