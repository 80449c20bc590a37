"""The HTTPS server that an API server asks. What it answers is given; a CA of clients decides who may ask.

Certificates are renewed in place, long before a process ends, so the files are looked at for each new connection.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from hansa.admission.review import NoReview
from hansa.runtime import errors

PATH = "/mutate"
LARGEST = 8 << 20  # bytes; an object in etcd has at most 1.5 MiB, and an update's review holds two
Answer = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Pair:
    """The files of a server's certificate and key, and of the CA of its clients if only they may ask."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


def listen(host: str, port: int) -> socket.socket:
    """Take a port; 0 is a free one."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address, family=family)
    except OSError as error:
        raise errors.HansaError(f"cannot listen on {host} port {port}: {error.strerror or error}") from None


class Tls:
    """The server's side of TLS, always with what the files hold now."""

    def __init__(self, pair: Pair) -> None:
        self._pair = pair
        self._read = (0, 0)
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._load(self.context)
        if pair.client_ca:
            self._demand_clients(pair.client_ca)
        self.context.sni_callback = self._before_handshake

    def _demand_clients(self, ca: Path) -> None:
        self.context.verify_mode = ssl.CERT_REQUIRED
        try:
            self.context.load_verify_locations(ca)
        except OSError as error:
            raise errors.HansaError(f"cannot use the CA of clients {ca}: {error.strerror or error}") from None

    def _before_handshake(self, _: ssl.SSLObject, _name: str | None, context: ssl.SSLContext) -> None:
        try:
            if self._stamps() != self._read:
                self._load(context)
        except (OSError, errors.HansaError):
            pass  # one of the two is being written; what was read still serves

    def _load(self, context: ssl.SSLContext) -> None:
        pair = self._pair
        try:
            stamps = self._stamps()
            context.load_cert_chain(pair.certificate, pair.key, password=_no_password)
        except OSError as error:
            reason = getattr(error, "reason", None) or error.strerror or error
            raise errors.HansaError(f"cannot serve with {pair.certificate} and {pair.key}: {reason}") from None
        self._read = stamps

    def _stamps(self) -> tuple[int, int]:
        return self._pair.certificate.stat().st_mtime_ns, self._pair.key.stat().st_mtime_ns


class Server:
    """Answers reviews at `/` and `/mutate`, and `/healthz`, on a socket that listens already."""

    def __init__(self, answer: Answer, tls: Tls, listening: socket.socket) -> None:
        self._answer, self._tls, self._socket = answer, tls, listening

    async def run(self) -> None:
        """Serve until cancelled; what was asked before is answered."""
        app = web.Application(client_max_size=LARGEST)
        app.router.add_post("/", self._review)
        app.router.add_post(PATH, self._review)
        app.router.add_get("/healthz", _healthy)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=3.0)
        await runner.setup()
        try:
            await web.SockSite(runner, self._socket, ssl_context=self._tls.context).start()
            await asyncio.get_running_loop().create_future()
        finally:
            await runner.cleanup()

    async def _review(self, request: web.Request) -> web.Response:
        if request.content_type != "application/json":
            return web.Response(status=415, text=f"a review is application/json, not {request.content_type}")
        try:
            return web.Response(body=self._answer(await request.read()), content_type="application/json")
        except NoReview as error:
            return web.Response(status=400, text=str(error))


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="ok")


def _no_password() -> str:
    # Without this, OpenSSL would ask on the terminal.
    raise errors.HansaError("the key of the server's certificate is encrypted; it must be plain")
