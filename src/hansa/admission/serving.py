"""The HTTPS server that the API server sends AdmissionReviews to, with client certificates if a CA for them is given.

Certificates are renewed in place while the process runs, so the files are checked on each new connection. Responses
are computed by a function that is given.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from hansa.admission.review import InvalidReview
from hansa.runtime import errors

PATH = "/mutate"
LARGEST_BODY = 8 << 20  # bytes; an object in etcd has at most 1.5 MiB, and the review of an update holds two
SHUTDOWN_SECONDS = 3.0  # for requests in flight
Respond = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """The files of the serving certificate and key, and of the CA for client certificates if those are required."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes any free port."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address, family=family)
    except OSError as error:
        raise errors.HansaError(f"cannot listen on {host} port {port}: {error.strerror or error}") from None


class Tls:
    """The TLS context of the server, which reloads its certificate when the files change."""

    def __init__(self, files: CertificateFiles) -> None:
        self._files = files
        self._loaded = (0, 0)
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._load(self.context)
        if files.client_ca:
            self._require_client_certificates(files.client_ca)
        self.context.sni_callback = self._before_handshake

    def _require_client_certificates(self, ca: Path) -> None:
        self.context.verify_mode = ssl.CERT_REQUIRED
        try:
            self.context.load_verify_locations(ca)
        except OSError as error:
            raise errors.HansaError(f"cannot load the client CA {ca}: {error.strerror or error}") from None

    def _before_handshake(self, _: ssl.SSLObject, _name: str | None, context: ssl.SSLContext) -> None:
        try:
            if self._modified() != self._loaded:
                self._load(context)
        except (OSError, errors.HansaError):
            pass  # one of the two files is being replaced; the loaded certificate stays in use

    def _load(self, context: ssl.SSLContext) -> None:
        files = self._files
        try:
            modified = self._modified()
            context.load_cert_chain(files.certificate, files.key, password=_no_password)
        except OSError as error:
            reason = getattr(error, "reason", None) or error.strerror or error
            raise errors.HansaError(
                f"cannot load the certificate {files.certificate} with key {files.key}: {reason}"
            ) from None
        self._loaded = modified

    def _modified(self) -> tuple[int, int]:
        return self._files.certificate.stat().st_mtime_ns, self._files.key.stat().st_mtime_ns


class Server:
    """Serves AdmissionReviews at `/` and `/mutate`, and `/healthz`, on a listening socket."""

    def __init__(self, respond: Respond, tls: Tls, listening: socket.socket) -> None:
        self._respond, self._tls, self._socket = respond, tls, listening

    async def run(self) -> None:
        """Serve until cancelled, then finish the requests in flight."""
        app = web.Application(client_max_size=LARGEST_BODY)
        app.router.add_post("/", self._review)
        app.router.add_post(PATH, self._review)
        app.router.add_get("/healthz", _healthy)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS)
        await runner.setup()
        try:
            await web.SockSite(runner, self._socket, ssl_context=self._tls.context).start()
            await asyncio.get_running_loop().create_future()
        finally:
            await runner.cleanup()

    async def _review(self, request: web.Request) -> web.Response:
        if request.content_type != "application/json":
            return web.Response(status=415, text=f"Content-Type must be application/json, not {request.content_type}")
        try:
            return web.Response(body=self._respond(await request.read()), content_type="application/json")
        except InvalidReview as error:
            return web.Response(status=400, text=str(error))


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="ok")


def _no_password() -> str:
    # Without a password function OpenSSL would prompt on the terminal.
    raise errors.HansaError("the key of the serving certificate is encrypted; use one without a password")
