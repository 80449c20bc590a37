"""The tenants of a meta cluster by the client certificates of their API servers, from a watch of VirtualClusters.

A tenant that is gone is refused at once. While the watch is interrupted for too long, all are refused.
"""

import asyncio
import datetime
import hashlib
from collections.abc import Callable, Iterable

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from hansa.control.store import Store
from hansa.kube.objects import Object
from hansa.kubelet.refusal import Refusal
from hansa.kubelet.tenants.tenant import Tenant
from hansa.runtime import clock

HASH = "kubelet-client"  # the index of VirtualClusters by the hashes of certificates
Read = Callable[[Object], Tenant | None]


class Directory:
    """The tenants. `read` makes one of a VirtualCluster: None if it has no certificate, or is being deleted."""

    def __init__(self, virtual_clusters: Store, read: Read, *, gone: Callable[[str], None], clock: clock.Clock) -> None:
        self._vcs, self._read, self._gone, self._clock = virtual_clusters, read, gone, clock
        self._tenants: dict[object, Tenant] = {}  # by the key of the VirtualCluster
        self._changed = asyncio.Event()
        virtual_clusters.index(HASH, self._hashes)
        self._end = virtual_clusters.listen(self._update, lambda vc: (vc.key,))

    def close(self) -> None:
        """Stop to follow the watch."""
        self._end()

    def tenant(self, certificate: bytes) -> Tenant:
        """The tenant with this certificate (DER), which the TLS handshake verified; raises a Refusal."""
        if not self._vcs.freshness.is_known:
            raise Refusal(503, "the meta cluster cannot be reached; try again")
        digest = hashlib.sha256(certificate).hexdigest()
        found = [one for vc in self._vcs.find(HASH, digest) if (one := self._read(vc))] if certificate else []
        if len(found) != 1 or not is_issued(certificate, found[0].ca, self._clock.wall()):
            raise Refusal(401, "Unauthorized")
        return found[0]

    def has(self, key: str) -> bool:
        """Whether there is a tenant with this key."""
        return any(one.key == key for one in self._tenants.values())

    @property
    def count(self) -> int:
        """The number of tenants."""
        return len(self._tenants)

    def authorities(self) -> bytes:
        """The CAs of all tenants as PEM."""
        return b"".join(sorted({one.ca for one in self._tenants.values()}))

    async def changed(self, within: float) -> None:
        """Wait until a tenant came, left or changed, at most so many seconds."""
        try:
            async with asyncio.timeout(within):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()

    def _hashes(self, vc: Object) -> Iterable[str]:
        found = self._read(vc)
        return found.hashes if found else ()

    def _update(self, key: object) -> None:
        before, vc = self._tenants.pop(key, None), self._vcs.get(key)  # type: ignore[arg-type]
        after = self._read(vc) if vc else None
        if after is not None:
            self._tenants[key] = after
        if before != after:
            self._changed.set()
        if before is not None and (after is None or after.key != before.key):
            self._gone(before.key)


def is_issued(certificate: bytes, ca: bytes, now: datetime.datetime) -> bool:
    """Whether one of the CAs issued the certificate, and it is valid now."""
    try:
        found = x509.load_der_x509_certificate(certificate)
        authorities = x509.load_pem_x509_certificates(ca)
    except ValueError:
        return False
    is_current = found.not_valid_before_utc <= now <= found.not_valid_after_utc
    return is_current and any(_is_issuer(one, found) for one in authorities)


def _is_issuer(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
