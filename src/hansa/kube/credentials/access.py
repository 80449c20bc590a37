"""The parameters of connections to an API server: URL, TLS, headers, proxy. Built from a Login by reading its parts.

An Access is immutable; new credentials are a new Access. Secrets are never in a repr or a message.
"""

import base64
import datetime
import os
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from cryptography import x509

from hansa.kube.credentials.login import Login, Part
from hansa.kube.credentials.plugin import Printed
from hansa.kube.errors import BadCredentials


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """The current connection parameters of a cluster."""

    server: str  # scheme://host:port/prefix, without a slash at the end
    tls: ssl.SSLContext | None
    login: Login
    server_name: str | None = None
    proxy: str | None = field(default=None, repr=False)
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    certificate_ends: datetime.datetime | None = None
    fresh_until: datetime.datetime | None = None  # from the exec plugin
    content: tuple[bytes, ...] = field(default=(), repr=False)  # all that was read, to detect changes

    def refusal(self, wall: datetime.datetime) -> str:
        """Why the server may have refused these credentials, and where they come from."""
        login = self.login
        if login.plugin is not None:
            return f"the credentials printed by {login.plugin.command}, named by {login.plugin.origin}, were refused"
        if login.certificate is not None and self.certificate_ends is not None and self.certificate_ends <= wall:
            return f"the client certificate in {login.certificate.origin} expired on {self.certificate_ends:%F %T} UTC"
        if not login.basic and login.token is None and login.certificate is None:
            return f"{login.origin} holds no credentials"
        presented = login.token or login.certificate
        return f"the credentials in {presented.origin if presented else login.origin} were refused"

    def distrust(self, reason: str) -> str:
        """Why the server's certificate was not accepted, with the origin of the CA or of the URL."""
        login = self.login
        if "expired" in reason or "not yet valid" in reason:
            return f"the certificate of {self.server} is out of date ({reason})"
        if "mismatch" in reason or "not valid for" in reason:
            named = "its host name" if not self.server_name else f"tls-server-name {self.server_name}"
            return f"the certificate of {self.server} is not for {named} ({reason}); see {login.server_origin}"
        trusted = f"the CA in {login.ca.origin}" if login.ca else "a CA that this machine trusts"
        return f"the certificate of {self.server} is not signed by {trusted} ({reason})"


def build(login: Login, printed: Printed | None = None) -> Access:
    """Read all parts of a login. `printed` is what its exec plugin printed, if it has one."""
    server, proxy = _server(login), _proxy(login)
    certificate, key = _pair(login, printed)
    ends = _ends(certificate, login)
    token = printed.token if printed else _token(login)
    ca = login.ca.read() if login.ca else b""
    return Access(
        server=server,
        tls=_tls(login, ca, certificate + b"\n" + key) if server.startswith("https:") else None,
        login=login,
        server_name=login.server_name or None,
        proxy=proxy,
        headers=_authorization(token, login.basic) + login.impersonate,
        certificate_ends=ends,
        fresh_until=printed.expires if printed else None,
        content=(ca, certificate, key, token.encode()),
    )


def _server(login: Login) -> str:
    try:
        parts = urlsplit(login.server if "://" in login.server else f"https://{login.server}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError
        _ = parts.port  # raises if the port is not a number
    except ValueError:
        raise BadCredentials(f'{login.server_origin} is "{login.server}", which is not an http(s) URL') from None
    return parts.geturl().rstrip("/")


def _proxy(login: Login) -> str | None:
    if not login.proxy:
        return None
    parts = urlsplit(login.proxy)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadCredentials(f"{login.proxy_origin} is not an http:// or https:// URL")
    return login.proxy


def _token(login: Login) -> str:
    if login.token is None:
        return ""
    token = login.token.read().decode(errors="replace").strip()
    if not token:
        raise BadCredentials(f"the token in {login.token.origin} is empty")
    if not token.isprintable() or not token.isascii():
        raise BadCredentials(f"the token in {login.token.origin} has characters that are not allowed in a header")
    return token


def _authorization(token: str, basic: str) -> tuple[tuple[str, str], ...]:
    if token:
        return (("Authorization", f"Bearer {token}"),)
    if basic:
        return (("Authorization", f"Basic {base64.b64encode(basic.encode()).decode()}"),)
    return ()


def _pair(login: Login, printed: Printed | None) -> tuple[bytes, bytes]:
    if printed and printed.certificate:
        return printed.certificate, printed.key
    if login.certificate is None and login.key is None:
        return b"", b""
    if login.certificate is None or login.key is None:
        there, missing = ("certificate", "key") if login.certificate else ("key", "certificate")
        raise BadCredentials(f"{login.origin} has a client {there} but no client {missing}")
    return login.certificate.read(), login.key.read()


def _ends(certificate: bytes, login: Login) -> datetime.datetime | None:
    if not certificate:
        return None
    try:
        return x509.load_pem_x509_certificate(certificate).not_valid_after_utc
    except ValueError:
        raise BadCredentials(f"the client certificate in {_origin(login.certificate, login)} is not PEM") from None


def _origin(part: Part | None, login: Login) -> str:
    if part is not None:
        return part.origin
    return login.plugin.origin if login.plugin else login.origin


def _tls(login: Login, ca: bytes, pair: bytes) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=None if login.ca is None else _trusted(ca, login.ca.origin))
    if login.skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if pair.strip():
        _present(context, pair, login)
    return context


def _trusted(ca: bytes, origin: str) -> str:
    try:
        x509.load_pem_x509_certificates(ca)
        return ca.decode()
    except ValueError:
        raise BadCredentials(f"the CA in {origin} is not PEM") from None


def _present(context: ssl.SSLContext, pair: bytes, login: Login) -> None:
    def no_password() -> str:
        # Without this, OpenSSL would prompt on the terminal and block the event loop.
        raise BadCredentials(f"the client key in {_origin(login.key, login)} is encrypted; it must be unencrypted")

    # OpenSSL reads key pairs only from files. The file is readable only by its owner and is removed at once.
    handle, name = tempfile.mkstemp(prefix="hansa-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(pair)
        context.load_cert_chain(name, password=no_password)
    except ssl.SSLError as error:
        where = f"{_origin(login.certificate, login)} and {_origin(login.key, login)}"
        why = "do not belong together" if "MISMATCH" in (error.reason or "") else "cannot be used"
        raise BadCredentials(f"the client certificate and key in {where} {why} ({error.reason})") from None
    finally:
        Path(name).unlink()
