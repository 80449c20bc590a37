"""The TLS of the vn-agent: its serving certificate, and the CAs of all tenants, which come and leave."""

import logging
import ssl
from collections.abc import AsyncIterator

from hansa.kube.certificates import KeyPair
from hansa.kubelet import certificates
from hansa.kubelet.certificates import Source
from hansa.kubelet.tenants.directory import Directory
from hansa.runtime.errors import HansaError

log = logging.getLogger(__name__)


class TenantTls:
    """The TLS contexts. A client certificate has to be of some tenant's CA; which tenant it is of is checked later."""

    def __init__(self, source: Source, directory: Directory) -> None:
        self._source, self._directory = source, directory

    async def contexts(self) -> AsyncIterator[ssl.SSLContext]:
        """The present context, and a new one whenever the certificate or a CA has changed."""
        made: tuple[KeyPair, bytes] | None = None
        while True:
            found = await self._read(made), self._directory.authorities()
            if found != made:
                context = certificates.context(found[0], found[1].decode())
                made = found
                yield context
            await self._directory.changed(certificates.READ_SECONDS)

    async def _read(self, made: tuple[KeyPair, bytes] | None) -> KeyPair:
        """The present serving certificate; while it can't be read or used, the former one."""
        try:
            found = await self._source.read()
            certificates.context(found, "")  # raises if it cannot be used
        except HansaError as error:
            if made is None:
                raise
            log.warning("serving certificate not read, keeping the former one", extra={"error": str(error)})
            return made[0]
        return found
