"""Runs system programs such as ip and nft to completion, with a deadline. Errors contain the program's stderr."""

import asyncio
import os

from hansa.runtime.errors import HansaError

DEADLINE_SECONDS = 30.0


class Failed(HansaError):
    """A system program failed or did not end in time."""


def search_path() -> str:
    """PATH with the sbin folders, which a user's PATH may lack."""
    return os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"))


async def run(*argv: str, text: str = "") -> str:
    """Run a program with the text as standard input; returns its standard output."""
    pipe = asyncio.subprocess.PIPE
    try:
        child = await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe, stderr=pipe, env=_environment())
    except OSError as error:
        raise Failed(f"cannot run {argv[0]}: {error.strerror}") from error
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            out, err = await child.communicate(text.encode())
    except TimeoutError:
        raise Failed(f'"{" ".join(argv)}" did not end within {DEADLINE_SECONDS:.0f} s') from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode != 0:
        raise Failed(f'"{" ".join(argv)}" failed: {err.decode().strip() or f"exit code {child.returncode}"}')
    return out.decode()


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": search_path()}
