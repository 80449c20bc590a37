"""Downloads official releases over HTTPS and verifies the publisher's checksum.

Hosts are probed once, so that an offline machine falls back to a build quickly. The checksum comes from the publisher
too: it detects damaged or mixed-up files, not a compromised publisher.
"""

import asyncio
import contextlib
import hashlib
import os
import re
import shutil
import tarfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

import aiohttp
import msgspec

from hansa.programs.binaries.binary import Binary, Platform
from hansa.programs.binaries.failures import SourceFailed
from hansa.programs.binaries.progress import Phase, Report

CHUNK_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds until a host counts as unreachable, and seconds without data until a transfer counts as stalled."""

    connect: float = 3.0
    stall: float = 30.0


@dataclass(frozen=True, slots=True)
class Downloads:
    """Downloads of one run; `unreachable` has the reason for each host that did not answer the probe."""

    session: aiohttp.ClientSession
    timeouts: Timeouts
    unreachable: Mapping[str, str]

    async def get(self, binary: Binary, here: Platform, *, work: Path, report: Report) -> Path:
        """Download the binary into the work folder."""
        if binary.release is None:
            raise SourceFailed("no official release exists")
        url, sums = (binary.filled(template, here) for template in (binary.release.url, binary.release.checksums))
        with self._failures(sums):
            report.enter(Phase.DOWNLOADING, _host(url))
            wanted = checksum(await self._text(sums), PurePosixPath(url).name)
        with self._failures(url):
            fetched = work / "download"
            if (found := await self._save(url, fetched)) != wanted:
                raise SourceFailed(f"its SHA-256 is {found}, published is {wanted}")
            if not binary.release.member:
                return fetched
            member = binary.filled(binary.release.member, here)
            return await asyncio.to_thread(_unpack, fetched, member, work / binary.name)

    @contextlib.contextmanager
    def _failures(self, url: str) -> Iterator[None]:
        """Turn every error of a download into SourceFailed with the host and the reason."""
        try:
            if reason := self.unreachable.get(_host(url)):
                raise SourceFailed(reason)
            yield
        except (aiohttp.ClientError, TimeoutError, SourceFailed) as error:
            raise SourceFailed(f"download from {_host(url)} failed ({_reason(error, self.timeouts.stall)})") from error

    async def _text(self, url: str) -> str:
        async with self._open(url) as response:
            return (await response.read()).decode(errors="replace")

    async def _save(self, url: str, path: Path) -> str:
        """Write the body to the file; returns its SHA-256."""
        digest = hashlib.sha256()
        async with self._open(url) as response:
            with path.open("wb") as file:
                async for chunk in response.content.iter_chunked(CHUNK_BYTES):
                    digest.update(chunk)
                    file.write(chunk)
        return digest.hexdigest()

    @contextlib.asynccontextmanager
    async def _open(self, url: str) -> AsyncIterator[aiohttp.ClientResponse]:
        async with self.session.get(url) as response:
            if response.status != 200:
                raise SourceFailed(f"{response.status} {response.reason} for {url}")
            yield response


@contextlib.asynccontextmanager
async def downloads(binaries: Iterable[Binary], here: Platform, timeouts: Timeouts) -> AsyncIterator[Downloads]:
    """Probe all hosts of these releases concurrently; downloads use those that answer."""
    releases = [(binary, binary.release) for binary in binaries if binary.release]
    urls = [b.filled(template, here) for b, release in releases for template in (release.url, release.checksums)]
    hosts = {_host(url): url for url in urls}
    timeout = aiohttp.ClientTimeout(total=None, connect=timeouts.stall, sock_read=timeouts.stall)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
        answers = await asyncio.gather(*(_probe(session, url, timeouts.connect) for url in hosts.values()))
        failed = {host: reason for host, reason in zip(hosts, answers, strict=True) if reason}
        yield Downloads(session, timeouts, failed)


def checksum(published: str, name: str) -> str:
    """The SHA-256 of the named file; `published` is a bare sum, lines of `sum name`, or GitHub's JSON."""
    sums = _github_sums(published, name) if published.startswith("{") else _listed_sums(published, name)
    if len(sums) != 1 or not re.fullmatch(r"[0-9a-fA-F]{64}", sums[0]):
        raise SourceFailed(f"no SHA-256 of {name} is published")
    return sums[0].lower()


def _listed_sums(published: str, name: str) -> list[str]:
    lines = [line.split() for line in published.splitlines() if line.strip()]
    return [words[0] for words in lines if len(words) == 1 or words[-1].lstrip("*") == name]


def _github_sums(published: str, name: str) -> list[str]:
    try:
        assets = msgspec.json.decode(published, type=_GithubRelease).assets
    except msgspec.DecodeError:
        return []
    return [(asset.digest or "").removeprefix("sha256:") for asset in assets if asset.name == name]


class _GithubAsset(msgspec.Struct, frozen=True):
    name: str
    digest: str | None = None


class _GithubRelease(msgspec.Struct, frozen=True):
    assets: list[_GithubAsset] = []


async def _probe(session: aiohttp.ClientSession, url: str, seconds: float) -> str:
    """Why the host is unreachable; empty if it answers, with any status."""
    try:
        async with asyncio.timeout(seconds), session.head(url, allow_redirects=False):
            return ""
    except (aiohttp.ClientError, TimeoutError) as error:
        return _reason(error, seconds)


def _reason(error: Exception, seconds: float) -> str:
    match error:
        case TimeoutError():
            return f"no data for {seconds:g} s"
        case aiohttp.ClientConnectorCertificateError():
            return "untrusted certificate"
        case aiohttp.ClientConnectorError():
            cause = error.os_error
            known = os.strerror(cause.errno) if cause.errno and cause.errno > 0 else cause.strerror
            return (known or str(cause)).lower()
        case _:
            return " ".join(str(error).split()) or type(error).__name__


def _host(url: str) -> str:
    return urlsplit(url).netloc


def _unpack(archive: Path, member: str, target: Path) -> Path:
    try:
        with tarfile.open(archive) as tar:
            source = tar.extractfile(member)
            if source is None:
                raise KeyError(member)
            with source, target.open("wb") as file:
                shutil.copyfileobj(source, file)
    except (KeyError, tarfile.TarError, EOFError) as error:
        raise SourceFailed(f"cannot read {member} from the archive") from error
    return target
