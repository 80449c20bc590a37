"""The IP address by which an API server reaches this process: the source address of connections to that server."""

import asyncio
import socket
import urllib.parse

from hansa.runtime import errors


async def towards(server: str) -> str:
    """The source address of this machine for a server's URL. Nothing is sent."""
    parts = urllib.parse.urlsplit(server)
    port = parts.port or (80 if parts.scheme == "http" else 443)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(parts.hostname, port, type=socket.SOCK_DGRAM)
        family, kind, protocol, _, target = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(target)  # on a datagram socket this only selects the route
            return str(probe.getsockname()[0])
    except OSError as error:
        raise errors.HansaError(
            f"cannot determine the address by which {server} reaches this process ({error.strerror or error}):"
            " set VKUBELET_POD_IP"
        ) from None
