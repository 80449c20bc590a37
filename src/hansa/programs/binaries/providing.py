"""Gets binaries from the first source that has them: the user's folder, the cache, a release, a build."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.resources.abc import Traversable
from pathlib import Path

from hansa.programs.binaries import building, failures
from hansa.programs.binaries import folder as folders
from hansa.programs.binaries.binary import Binary, Platform, this_platform
from hansa.programs.binaries.cache import CacheEntry, default_cache, remove_leftovers
from hansa.programs.binaries.cache import entry as cache_entry
from hansa.programs.binaries.downloading import Downloads, Timeouts, downloads
from hansa.programs.binaries.failures import SourceFailed, Unavailable
from hansa.programs.binaries.pinned import catalogue
from hansa.programs.binaries.progress import Listener, Report, reporting


class Source(StrEnum):
    """Where a binary came from."""

    FOLDER = "folder"
    CACHE = "cache"
    DOWNLOAD = "download"
    BUILD = "build"


@dataclass(frozen=True, slots=True)
class Sources:
    """Where binaries are searched, and which exist. Users set only the first two fields; tests the others."""

    folder: Path | None = field(default_factory=folders.default_folder)
    cache: Path = field(default_factory=default_cache)
    catalogue: Mapping[str, Binary] = field(default_factory=catalogue)
    modules: Traversable = field(default_factory=building.modules)
    timeouts: Timeouts = field(default_factory=Timeouts)
    platform: Platform = field(default_factory=this_platform)

    def entry(self, binary: Binary) -> CacheEntry:
        """The cache entry of the binary."""
        return cache_entry(self.cache, binary, self.platform)


@dataclass(frozen=True, slots=True)
class BinaryLocation:
    """A binary and its path; without a path it has to be downloaded or built first."""

    binary: Binary
    path: Path | None = None
    source: Source | None = None


async def ensure(
    names: Iterable[str], *, sources: Sources | None = None, progress: Listener = lambda _: None
) -> dict[str, Path]:
    """The paths of the named binaries; missing ones are downloaded or built."""
    located = await provide(names, sources=sources, progress=progress)
    return {one.binary.name: one.path for one in located if one.path}


async def provide(
    names: Iterable[str], *, sources: Sources | None = None, progress: Listener = lambda _: None
) -> list[BinaryLocation]:
    """Like `ensure`, but returns the source of each binary too."""
    sources = sources or Sources()
    await remove_leftovers(sources.cache)
    located = await describe(names, sources=sources)
    missing = [one.binary for one in located if one.path is None]
    if not missing:
        return located
    made = {}
    async with downloads(missing, sources.platform, sources.timeouts) as releases:
        for binary in missing:  # one at a time: a single build uses all cores
            made[binary.name] = await _make(binary, sources, releases=releases, progress=progress)
    return [made.get(one.binary.name, one) for one in located]


async def describe(names: Iterable[str], *, sources: Sources | None = None) -> list[BinaryLocation]:
    """The named binaries and the paths of those that exist; nothing is downloaded or built."""
    sources = sources or Sources()
    wanted = [_known(name, sources.catalogue) for name in dict.fromkeys(names)]
    in_folder = await folders.find(sources.folder, wanted)
    return [_locate(binary, in_folder, sources) for binary in wanted]


def _known(name: str, known: Mapping[str, Binary]) -> Binary:
    if name not in known:
        raise Unavailable(f'unknown binary "{name}"; known are {", ".join(sorted(known))}')
    return known[name]


def _locate(binary: Binary, in_folder: Mapping[str, Path], sources: Sources) -> BinaryLocation:
    cached = sources.entry(binary).item
    if binary.name in in_folder:
        return BinaryLocation(binary, in_folder[binary.name], Source.FOLDER)
    return BinaryLocation(binary, cached, Source.CACHE) if cached.exists() else BinaryLocation(binary)


async def _make(binary: Binary, sources: Sources, *, releases: Downloads, progress: Listener) -> BinaryLocation:
    """Download or build a missing binary under the lock of its cache entry, unless another process was faster."""
    entry = sources.entry(binary)
    async with reporting(binary, progress) as report, entry.locked(report.waiting):
        if entry.item.exists():
            return BinaryLocation(binary, entry.item, Source.CACHE)
        reasons = [f"not in the folder {sources.folder}"] if sources.folder else []
        reasons.append(f"not in the cache {sources.cache}")
        for source in (Source.DOWNLOAD, Source.BUILD):
            try:
                with entry.work() as work:
                    made = await _attempt(source, binary, sources, releases=releases, work=work, report=report)
                    return BinaryLocation(binary, await entry.put(made), source)
            except SourceFailed as failure:
                reasons.append(str(failure))
        raise failures.unavailable(binary, reasons)


async def _attempt(
    source: Source, binary: Binary, sources: Sources, *, releases: Downloads, work: Path, report: Report
) -> Path:
    if source is Source.DOWNLOAD:
        return await releases.get(binary, sources.platform, work=work, report=report)
    return await building.build(
        binary, sources.platform, source=sources.modules, root=sources.cache, work=work, report=report
    )
