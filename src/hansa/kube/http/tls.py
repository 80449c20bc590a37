"""TLS between a connection and its socket, with small buffers. Used for each connection to an API server.

The TLS of uvloop keeps a buffer of 256 KiB for each connection, and a syncer has hundreds (docs/decisions/0007).
Certificates and trust are left to the SSLContext of the access.
"""

import asyncio
import ssl
from typing import cast

RECORD = 2**14  # bytes, the largest record of TLS
PIECE = 2 * RECORD  # bytes that OpenSSL gets at a time, since its buffer keeps the size of the largest input


class Secured(asyncio.Transport, asyncio.Protocol):
    """The transport of the protocol `above`, which encrypts its bytes and sends them on the transport `below`."""

    def __init__(self, below: asyncio.Transport, above: asyncio.Protocol) -> None:
        super().__init__()
        self._below, self._above = below, above
        self._encrypted, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session: ssl.SSLObject
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def start(self, tls: ssl.SSLContext, server_name: str | None) -> None:
        """Do the handshake; raises why it failed."""
        self._session = tls.wrap_bio(self._encrypted, self._to_send, server_hostname=server_name)
        self._below.set_protocol(self)
        self._do_handshake()
        await self._ready

    def write(self, data: bytes | bytearray | memoryview) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[self._session.write(rest) :]
        except ssl.SSLError:
            self.abort()
        self._flush()

    def pause_reading(self) -> None:
        self._below.pause_reading()

    def resume_reading(self) -> None:
        self._below.resume_reading()

    def is_closing(self) -> bool:
        return self._below.is_closing()

    def close(self) -> None:
        self._below.close()

    def abort(self) -> None:
        self._below.abort()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._above = cast("asyncio.Protocol", protocol)

    def data_received(self, data: bytes) -> None:
        if self._ready.done():
            self._decrypt(data)
        else:
            self._encrypted.write(data)
            self._do_handshake()

    def eof_received(self) -> None:
        self._fail(ConnectionResetError("the server closed the connection during the TLS handshake"))
        self._above.eof_received()

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(error or ConnectionResetError("the connection was lost during the TLS handshake"))
        self._above.connection_lost(error)

    def pause_writing(self) -> None:
        self._above.pause_writing()

    def resume_writing(self) -> None:
        self._above.resume_writing()

    def _do_handshake(self) -> None:
        try:
            self._session.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError as error:
            self._flush()  # the alert with the reason
            self._fail(error)
        else:
            self._flush()
            if not self._ready.done():  # a signal handler may have cancelled the wait meanwhile
                self._ready.set_result(None)
            self._decrypt(b"")

    def _decrypt(self, data: bytes) -> None:
        for start in range(0, len(data) or 1, PIECE):
            self._encrypted.write(data[start : start + PIECE])
            try:
                while plain := self._session.read(RECORD):
                    self._above.data_received(plain)
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                self.abort()
                return
            self._above.eof_received()  # a close notification
            self.close()
            return
        self._flush()  # TLS itself may have to send, such as a key update

    def _flush(self) -> None:
        if self._to_send.pending:
            self._below.write(self._to_send.read())

    def _fail(self, error: Exception) -> None:
        if not self._ready.done():
            self._ready.set_exception(error)
