"""Official releases over HTTP: asked once whether they can be reached, verified by the publisher's checksum.

The checksum comes from the publisher too, so it guards against damage and mix-ups, not against a publisher gone bad.
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

from hansa.local.binaries.binary import Binary, Platform
from hansa.local.binaries.failures import SourceFailed
from hansa.local.binaries.progress import Phase, Report

CHUNK_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Patience:
    """How many seconds all hosts together may take to answer at all, and how long a transfer may stand still."""

    connect: float = 3.0
    stall: float = 30.0


@dataclass(frozen=True, slots=True)
class Downloads:
    """The releases as this run can reach them; `unreachable` gives the reason for each host that did not answer."""

    session: aiohttp.ClientSession
    patience: Patience
    unreachable: Mapping[str, str]

    async def get(self, binary: Binary, here: Platform, *, work: Path, report: Report) -> Path:
        """Download the binary into the work folder."""
        if binary.release is None:
            raise SourceFailed("there is no official download")
        url, sums = (binary.filled(template, here) for template in (binary.release.url, binary.release.checksums))
        with self._failures(sums):
            report.enter(Phase.DOWNLOADING, _host(url))
            wanted = checksum(await self._text(sums), PurePosixPath(url).name)
        with self._failures(url):
            fetched = work / "download"
            if (found := await self._save(url, fetched)) != wanted:
                raise SourceFailed(f"its SHA-256 is {found}, but {wanted} was published")
            if not binary.release.member:
                return fetched
            member = binary.filled(binary.release.member, here)
            return await asyncio.to_thread(_unpack, fetched, member, work / binary.name)

    @contextlib.contextmanager
    def _failures(self, url: str) -> Iterator[None]:
        """Every reason why the download failed, in one form."""
        try:
            if reason := self.unreachable.get(_host(url)):
                raise SourceFailed(reason)
            yield
        except (aiohttp.ClientError, TimeoutError, SourceFailed) as error:
            raise SourceFailed(f"download from {_host(url)} failed ({_reason(error, self.patience.stall)})") from error

    async def _text(self, url: str) -> str:
        async with self._open(url) as response:
            return (await response.read()).decode(errors="replace")

    async def _save(self, url: str, path: Path) -> str:
        """Write the body to the file and give its SHA-256."""
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
async def downloads(binaries: Iterable[Binary], here: Platform, patience: Patience) -> AsyncIterator[Downloads]:
    """Ask all hosts of these binaries at once whether they answer, then download from those that do."""
    releases = [(binary, binary.release) for binary in binaries if binary.release]
    urls = [b.filled(template, here) for b, release in releases for template in (release.url, release.checksums)]
    hosts = {_host(url): url for url in urls}
    timeout = aiohttp.ClientTimeout(total=None, connect=patience.stall, sock_read=patience.stall)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=True) as session:
        answers = await asyncio.gather(*(_probe(session, url, patience.connect) for url in hosts.values()))
        failed = {host: reason for host, reason in zip(hosts, answers, strict=True) if reason}
        yield Downloads(session, patience, failed)


def checksum(published: str, name: str) -> str:
    """The SHA-256 of the named file in what the publisher says: a bare sum, lines of `sum name`, or GitHub's JSON."""
    sums = _github_sums(published, name) if published.startswith("{") else _listed_sums(published, name)
    if len(sums) != 1 or not re.fullmatch(r"[0-9a-fA-F]{64}", sums[0]):
        raise SourceFailed(f"no SHA-256 of {name} was published")
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
    """Why the host does not answer; empty if it does. Whatever it answers, it can be reached."""
    try:
        async with asyncio.timeout(seconds), session.head(url, allow_redirects=False):
            return ""
    except (aiohttp.ClientError, TimeoutError) as error:
        return _reason(error, seconds)


def _reason(error: Exception, seconds: float) -> str:
    match error:
        case TimeoutError():
            return f"nothing came for {seconds:g} s"
        case aiohttp.ClientConnectorCertificateError():
            return "its certificate is not trusted"
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
        raise SourceFailed(f"the archive has no readable {member}") from error
    return target
