"""A terminal with a program in it, as a user has one; used by tests of interactive commands."""

import asyncio
import contextlib
import fcntl
import os
import pty
import signal
import struct
import termios
from collections.abc import Sequence

from eventually import eventually


class Terminal:
    """A program whose standard streams are a terminal."""

    def __init__(self, master: int, process: asyncio.subprocess.Process) -> None:
        self._master, self._process = master, process
        self._shown = b""

    @classmethod
    async def start(cls, argv: Sequence[str], *, rows: int, columns: int) -> "Terminal":
        """Start a program in a new terminal."""
        master, slave = pty.openpty()
        _set_size(master, rows, columns)
        os.set_blocking(master, False)
        process = await asyncio.create_subprocess_exec(*argv, stdin=slave, stdout=slave, stderr=slave)
        os.close(slave)
        return cls(master, process)

    def resize(self, rows: int, columns: int) -> None:
        """Change the size, and signal it as terminals do."""
        _set_size(self._master, rows, columns)
        self._process.send_signal(signal.SIGWINCH)

    def type(self, line: str) -> None:
        """Type a line."""
        os.write(self._master, f"{line}\n".encode())

    async def shows(self, line: str, wanted: str) -> None:
        """Type a line, again and again, until the terminal shows an answer to it."""
        self._shown = b""

        async def look() -> bool:
            self.type(line)
            await asyncio.sleep(0.5)
            with contextlib.suppress(OSError):
                self._shown += os.read(self._master, 2**16)
            assert wanted.encode() in self._shown, self._shown
            return True

        await eventually(look)

    async def ended(self) -> int:
        """Wait for the end of the program; its exit code."""
        async with asyncio.timeout(60):
            return await self._process.wait()

    async def close(self) -> None:
        """End the program if it runs, and close the terminal."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        os.close(self._master)


def _set_size(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
