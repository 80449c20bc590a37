"""A serving certificate, signed by a CA that is created at start and valid for this process only.

Used when no certificate is given. The API server must trust the CA, so it goes into the webhook's configuration.
"""

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from hansa.admission.serving import CertificateFiles
from hansa.admission.settings import WebhookSettings
from hansa.kube import certificates


@contextlib.contextmanager
def certificate_files(settings: WebhookSettings, now: datetime) -> Iterator[tuple[CertificateFiles, bytes]]:
    """The serving certificate, given or self-signed, and the CA that the API server must trust for it."""
    if settings.certificate and settings.key:
        yield CertificateFiles(settings.certificate, settings.key, settings.client_ca), settings.ca_bundle
    else:
        with files(settings.names(), now, client_ca=settings.client_ca) as made:
            yield made


@contextlib.contextmanager
def files(
    names: Iterable[str], now: datetime, *, client_ca: Path | None = None
) -> Iterator[tuple[CertificateFiles, bytes]]:
    """The files of a certificate and key for these names, and the CA's certificate. OpenSSL reads only files."""
    authority = certificates.authority("hansa-webhook-ca", now)
    issued = certificates.issue(authority, certificates.Subject("hansa-webhook", names=tuple(names)), now)
    with tempfile.TemporaryDirectory(prefix="hansa-webhook-") as folder:
        made = CertificateFiles(Path(folder, "tls.crt"), Path(folder, "tls.key"), client_ca)
        made.certificate.write_bytes(issued.certificate)
        made.key.touch(mode=0o600)
        made.key.write_bytes(issued.key)
        yield made, authority.certificate
