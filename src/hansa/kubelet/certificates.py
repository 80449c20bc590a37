"""The TLS of the kubelet API: its serving certificate, and the CA of client certificates, both read again each minute.

The certificate is that of given files, or signed by the cluster (`signing`). The CA is the one that the API server
publishes for its clients; callers without a certificate of that CA have to send a token.
"""

import asyncio
import logging
import ssl
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from hansa.kube import errors, resources
from hansa.kube.certificates import KeyPair
from hansa.kube.client import Client
from hansa.runtime import clock
from hansa.runtime.errors import HansaError

log = logging.getLogger(__name__)
READ_SECONDS = 60.0
CLIENT_CA = ("kube-system", "extension-apiserver-authentication", "client-ca-file")  # namespace, ConfigMap, key


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """The files of a serving certificate and of its key."""

    certificate: Path
    key: Path

    async def read(self) -> KeyPair:
        """Their contents."""
        try:
            return KeyPair(self.certificate.read_bytes(), self.key.read_bytes())
        except OSError as error:
            raise HansaError(f"cannot read {error.filename}: {error.strerror}") from None


class Source(Protocol):
    """Where the serving certificate comes from."""

    async def read(self) -> KeyPair:
        """The present certificate and its key."""


class Serving:
    """The TLS contexts of a process, which all of its servers share."""

    def __init__(self, client: Client, source: Source, *, clock: clock.Clock) -> None:
        self._client, self._source, self._clock = client, source, clock
        self._made: tuple[KeyPair, str, ssl.SSLContext] | None = None
        self._reading, self._is_due_at = asyncio.Lock(), 0.0
        self._problem = ""

    async def contexts(self) -> AsyncIterator[ssl.SSLContext]:
        """The present context, and a new one whenever the certificate or the CA has changed."""
        used = None
        while True:
            if (context := await self._present()) is not used:
                used = context
                yield context
            await self._clock.sleep(READ_SECONDS)

    async def _present(self) -> ssl.SSLContext:
        """What another server has read is read again only when it is due."""
        async with self._reading:
            if self._made is not None and self._clock.now() < self._is_due_at:
                return self._made[2]
            context = await self._read()
            self._is_due_at = self._clock.now() + READ_SECONDS / 2
            return context

    async def _read(self) -> ssl.SSLContext:
        """While a new certificate or the CA can't be read, the former ones are used."""
        try:
            pair, client_ca = await self._source.read(), await self._client_ca()
            if self._made is None or self._made[:2] != (pair, client_ca):
                self._made = (pair, client_ca, context(pair, client_ca))
        except HansaError as error:
            self._warn(str(error))
            if self._made is None:
                raise
        return self._made[2]

    async def _client_ca(self) -> str:
        """The CA of client certificates; empty if the API server publishes none."""
        namespace, name, key = CLIENT_CA
        try:
            found = await self._client.get(resources.CONFIG_MAPS, name, namespace=namespace)
        except (errors.NotFound, errors.Forbidden) as error:
            self._warn(f"client certificates are refused, only tokens are accepted: {error}")
            return ""
        self._problem = ""
        return str((found.get("data") or {}).get(key, ""))

    def _warn(self, problem: str) -> None:
        if problem != self._problem:
            log.warning("kubelet API certificates", extra={"error": problem})
        self._problem = problem


def context(pair: KeyPair, client_ca: str) -> ssl.SSLContext:
    """A server's TLS with this certificate. With a CA, client certificates are asked for and have to be valid."""
    made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # OpenSSL reads certificates from files only.
        with tempfile.NamedTemporaryFile(prefix="hansa-kubelet-") as file:
            file.write(pair.certificate + b"\n" + pair.key)
            file.flush()
            made.load_cert_chain(file.name, password=_no_password)
        if client_ca:
            made.load_verify_locations(cadata=client_ca)
            made.verify_mode = ssl.CERT_OPTIONAL
    except (ssl.SSLError, ValueError) as error:
        raise HansaError(f"a certificate or key of the kubelet API is not valid PEM: {error}") from None
    return made


def _no_password() -> str:
    raise HansaError("the key of the kubelet API's certificate is encrypted; use one without a password")
