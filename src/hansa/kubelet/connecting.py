"""Accepted sockets become TLS connections: each with the present certificate, a deadline, and keep-alives.

The server of asyncio has one TLS context for all connections, and reports no handshake that failed.
"""

import asyncio
import contextlib
import socket
import ssl

HANDSHAKE_SECONDS = 10.0
CLOSE_SECONDS = 10.0  # for the last bytes of an answer and the end of TLS; then the connection is cut
KEEPALIVE = {"TCP_KEEPIDLE": 15, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 3}  # a dead caller is noticed within a minute
BUFFER = 2**16  # bytes that are received before they are read; twice as many may be
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def secured(accepted: socket.socket, context: ssl.SSLContext) -> Streams:
    """The two ends of a connection after its TLS handshake. Raises an OSError, of which TLS errors are."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(BUFFER, loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    try:
        _keep_alive(accepted)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol,
            accepted,
            ssl=context,
            ssl_handshake_timeout=HANDSHAKE_SECONDS,
            ssl_shutdown_timeout=CLOSE_SECONDS,
        )
    except BaseException:
        accepted.close()
        raise
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def closed(writer: asyncio.StreamWriter) -> None:
    """Close a connection, and return when it has no descriptor any more."""
    writer.close()
    with contextlib.suppress(OSError):  # the other side has left, or does not end TLS in time
        await writer.wait_closed()


def _keep_alive(accepted: socket.socket) -> None:
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in KEEPALIVE.items():
        if option := getattr(socket, name, None):
            accepted.setsockopt(socket.IPPROTO_TCP, option, value)
