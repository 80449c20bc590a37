"""Asks a server on this machine whether it is healthy, also one in another network namespace."""

import asyncio
import contextlib
import ssl

from hansa.local.machines.door import Place

PROBE_SECONDS = 2.0


async def is_healthy(place: Place, path: str) -> bool:
    """Whether the HTTPS server at that place answers 200 on that path."""
    with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(PROBE_SECONDS):
            return await _ask(place, path)
    return False


async def _ask(place: Place, path: str) -> bool:
    socket = place.open()
    try:
        await asyncio.get_running_loop().sock_connect(socket, (place.address, place.port))
    except BaseException:
        socket.close()
        raise
    # From here on the connection owns the socket: closing it ourselves would leave the event loop with a stale number.
    reader, writer = await asyncio.open_connection(sock=socket, ssl=_any_certificate(), server_hostname="localhost")
    try:
        writer.write(f"GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
        return (await reader.readline()).split()[1:2] == [b"200"]
    finally:
        writer.transport.abort()


def _any_certificate() -> ssl.SSLContext:
    """Health is no secret and nothing is sent: schedulers and controller managers sign their own certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
