"""Runs the system's programs to their end, with a deadline. A failure is a sentence with what the program said."""

import asyncio
import os

from hansa.runtime.errors import HansaError

DEADLINE_SECONDS = 30.0


class Failed(HansaError):
    """A program of the system ended with an error."""


def search_path() -> str:
    """Where programs are looked for: a user's PATH may lack the folders of the administrator's programs."""
    return os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"))


async def run(*argv: str, text: str = "") -> str:
    """Run a program with the text as its input; returns what it printed."""
    pipe = asyncio.subprocess.PIPE
    try:
        child = await asyncio.create_subprocess_exec(*argv, stdin=pipe, stdout=pipe, stderr=pipe, env=_environment())
    except OSError as error:
        raise Failed(f"cannot run {argv[0]}: {error.strerror}") from error
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            out, err = await child.communicate(text.encode())
    except TimeoutError:
        raise Failed(f'"{" ".join(argv)}" did not end in {DEADLINE_SECONDS:.0f} s') from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode != 0:
        raise Failed(f'"{" ".join(argv)}" failed: {err.decode().strip() or f"exit code {child.returncode}"}')
    return out.decode()


def _environment() -> dict[str, str]:
    return {**os.environ, "PATH": search_path()}
