"""The serving certificate that the replicas of a webhook share, in a Secret: issued, renewed, and read again.

Used when a Secret is named for it. Whichever replica finds it missing or due issues the next one, and the resource
version decides between several. A new authority is trusted before the first certificate of it is served: the CA bundle
then has both.
"""

import base64
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from hansa.admission.serving import CertificateFiles
from hansa.kube import certificates, errors, resources
from hansa.kube.certificates import KeyPair, Subject
from hansa.kube.client import Client
from hansa.kube.objects import NamespacedName, Object
from hansa.runtime.clock import Clock
from hansa.runtime.errors import HansaError

log = logging.getLogger(__name__)
LIFETIME: Final = timedelta(days=365)
RENEW_AFTER: Final = 0.7  # of the certificate's lifetime
READ_SECONDS: Final = 60.0
ATTEMPTS: Final = 5  # of several replicas that issue at once, each loses at most once per replica
BUNDLE, AUTHORITY_KEY, CERTIFICATE, KEY = "ca.crt", "ca.key", "tls.crt", "tls.key"
Data = Mapping[str, bytes]
Publish = Callable[[bytes], Awaitable[None]]


def renewed(data: Data, names: tuple[str, ...], now: datetime) -> dict[str, bytes] | None:
    """The next content of the Secret; None while the present one holds."""
    if not _is_due(data, names, now):
        return None
    authority, bundle = _authority(data, now)
    issued = certificates.issue(authority, Subject("hansa-webhook", names=names), now, lifetime=LIFETIME)
    return {BUNDLE: bundle, AUTHORITY_KEY: authority.key, CERTIFICATE: issued.certificate, KEY: issued.key}


def _is_due(data: Data, names: tuple[str, ...], now: datetime) -> bool:
    if not all(data.get(key) for key in (BUNDLE, AUTHORITY_KEY, CERTIFICATE, KEY)):
        return True
    try:
        begin, end = certificates.validity(data[CERTIFICATE])
        is_named = set(names) <= certificates.names(data[CERTIFICATE])
    except ValueError:
        return True
    return not is_named or now >= begin + RENEW_AFTER * (end - begin)


def _authority(data: Data, now: datetime) -> tuple[KeyPair, bytes]:
    """The authority of the next certificate, and all that must be trusted meanwhile. The newest is the first."""
    bundle = data.get(BUNDLE, b"")
    try:
        if certificates.validity(bundle)[1] > now + LIFETIME and data.get(AUTHORITY_KEY):
            return KeyPair(bundle, data[AUTHORITY_KEY]), bundle
        former = bundle
    except ValueError:
        former = b""
    made = certificates.authority("hansa-webhook-ca", now)
    return made, made.certificate + former


class SharedCertificate:
    """The certificate in a Secret, and its files in a folder. `names` are those by which the API server calls.

    With `client_ca`, clients need a certificate that it signed.
    """

    def __init__(
        self,
        client: Client,
        secret: NamespacedName,
        folder: Path,
        *,
        names: tuple[str, ...],
        client_ca: Path | None = None,
        clock: Clock,
    ) -> None:
        self._client, self._secret, self._names, self._clock = client, secret, names, clock
        self.files = CertificateFiles(folder / CERTIFICATE, folder / KEY, client_ca)
        self.ca = b""  # what the API server must trust

    async def read(self, publish: Publish | None = None) -> None:
        """Read the Secret, renew it if it is due, and write the files if they differ."""
        for _ in range(ATTEMPTS):
            try:
                return await self._take(await self._present(publish), publish)
            except errors.Conflict:
                continue  # another replica was faster
        raise HansaError(f"Secret {self._secret} changes all the time; is it written by another program?")

    async def follow(self, publish: Publish) -> None:
        """Read it again and again; `publish` is called with each new CA bundle."""
        while True:
            await self._clock.sleep(READ_SECONDS)
            await self.read(publish)

    async def _present(self, publish: Publish | None) -> Data:
        stored = await self._stored()
        data = {key: base64.b64decode(value) for key, value in (stored.get("data") or {}).items()}
        following = renewed(data, self._names, self._clock.wall())
        if following is None:
            return data
        if publish is not None and following[BUNDLE] != self.ca:
            await publish(following[BUNDLE])
        await self._store(stored, following)
        log.info("certificate of the webhook issued", extra={"secret": str(self._secret)})
        return following

    async def _take(self, data: Data, publish: Publish | None) -> None:
        if publish is not None and data[BUNDLE] != self.ca:
            await publish(data[BUNDLE])
        self.ca = data[BUNDLE]
        files = {self.files.certificate: data[CERTIFICATE], self.files.key: data[KEY]}
        for path, content in files.items():
            if not path.exists() or path.read_bytes() != content:
                path.touch(mode=0o600)
                path.write_bytes(content)

    async def _stored(self) -> Object:
        try:
            return await self._client.get(resources.SECRETS, self._secret.name, namespace=self._secret.namespace)
        except errors.NotFound:
            empty = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": self._secret.name}}
            try:
                return await self._client.create(resources.SECRETS, Object.of(empty), namespace=self._secret.namespace)
            except errors.AlreadyExists:
                return await self._client.get(resources.SECRETS, self._secret.name, namespace=self._secret.namespace)

    async def _store(self, stored: Object, data: Data) -> None:
        encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
        patch = {"metadata": {"resourceVersion": stored.metadata.resource_version}, "data": encoded}
        await self._client.patch(resources.SECRETS, self._secret.name, patch, namespace=self._secret.namespace)
