"""Under which address this process is reached from where an API server is: the one that it sends from to there."""

import asyncio
import socket
import urllib.parse

from hansa.runtime import errors


async def towards(server: str) -> str:
    """The IP address of this machine on the way to a server's URL. Nothing is sent."""
    parts = urllib.parse.urlsplit(server)
    port = parts.port or (80 if parts.scheme == "http" else 443)
    try:
        found = await asyncio.get_running_loop().getaddrinfo(parts.hostname, port, type=socket.SOCK_DGRAM)
        family, kind, protocol, _, target = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(target)  # of a datagram socket: only the route is chosen
            return str(probe.getsockname()[0])
    except OSError as error:
        raise errors.HansaError(
            f"cannot tell under which address {server} reaches us ({error.strerror or error}): set VKUBELET_POD_IP"
        ) from None
