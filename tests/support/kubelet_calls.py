"""Raw calls of the kubelet API of a virtual node, as no kubectl makes them."""

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path


async def call(
    port: int,
    path: str,
    *,
    token: str = "",
    certificate: Path | None = None,
    method: str = "GET",
    address: str = "",
    headers: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """The status and body of an answer. The file has a client certificate and its key; 0 is a refused connection."""
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    if certificate is not None:
        tls.load_cert_chain(certificate)
    try:
        async with asyncio.timeout(20):
            reader, writer = await asyncio.open_connection(address or "127.0.0.1", port, ssl=tls)
            sent = {"Host": "node"} | ({"Authorization": f"Bearer {token}"} if token else {}) | dict(headers or {})
            head = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
            writer.write("\r\n".join([*head, "", ""]).encode())
            answer = await reader.read()
            writer.close()
    except (ssl.SSLError, ConnectionError):
        return 0, ""
    lines, _, body = answer.partition(b"\r\n\r\n")
    if b"\r\ntransfer-encoding: chunked" in lines.lower():
        body = _unchunked(body)
    return (int(lines.split()[1]), body.decode()) if lines else (0, "")


def _unchunked(body: bytes) -> bytes:
    """The content of a body that was sent in pieces, as far as it was received."""
    content = b""
    while size := int(body.partition(b"\r\n")[0] or b"0", 16):
        start = body.index(b"\r\n") + 2
        content += body[start : start + size]
        body = body[start + size + 2 :]
    return content
