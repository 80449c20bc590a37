"""Probes the health endpoint of an HTTPS server on this machine, also in another network namespace.

Used while a component starts, before a Kubernetes client can reach it.
"""

import asyncio
import contextlib
import ssl

from hansa.programs.relay import NetnsAddress

PROBE_SECONDS = 2.0


async def is_healthy(address: NetnsAddress, path: str) -> bool:
    """Whether the HTTPS server at the address answers 200 on the path."""
    with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(PROBE_SECONDS):
            return await _get(address, path)
    return False


async def _get(address: NetnsAddress, path: str) -> bool:
    socket = address.open()
    try:
        await asyncio.get_running_loop().sock_connect(socket, (address.address, address.port))
    except BaseException:
        socket.close()
        raise
    # From here on the transport owns the socket: closing it here would leave the event loop with a stale descriptor.
    reader, writer = await asyncio.open_connection(sock=socket, ssl=_any_certificate(), server_hostname="localhost")
    try:
        writer.write(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        return (await reader.readline()).split()[1:2] == [b"200"]
    finally:
        writer.transport.abort()


def _any_certificate() -> ssl.SSLContext:
    """No verification: health is not secret, no credential is sent, and schedulers use self-signed certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
