"""A certificate that we sign ourselves, for as long as the process lives; whoever asks must be told its authority."""

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from hansa.admission.serving import Pair
from hansa.kube import certificates


@contextlib.contextmanager
def pair(names: Iterable[str], now: datetime, *, client_ca: Path | None = None) -> Iterator[tuple[Pair, bytes]]:
    """The files of a server's pair for these names, and the authority's certificate. OpenSSL reads only files."""
    authority = certificates.authority("hansa-webhook-ca", now)
    made = certificates.issue(authority, certificates.Subject("hansa-webhook", names=tuple(names)), now)
    with tempfile.TemporaryDirectory(prefix="hansa-webhook-") as folder:
        files = Pair(Path(folder, "tls.crt"), Path(folder, "tls.key"), client_ca)
        files.certificate.write_bytes(made.certificate)
        files.key.touch(mode=0o600)
        files.key.write_bytes(made.key)
        yield files, authority.certificate
