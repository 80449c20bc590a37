"""Binaries for whoever asks, from the first source that has them: the user's folder, the cache, a release, a build."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.resources.abc import Traversable
from pathlib import Path

from hansa.local.binaries import building, failures
from hansa.local.binaries import folder as folders
from hansa.local.binaries.binary import Binary, Platform, this_platform
from hansa.local.binaries.cache import Place, default_cache, place, sweep
from hansa.local.binaries.downloading import Downloads, Patience, downloads
from hansa.local.binaries.failures import SourceFailed, Unavailable
from hansa.local.binaries.pinned import catalogue
from hansa.local.binaries.progress import Listener, Report, reporting


class Source(StrEnum):
    """Where a binary came from."""

    FOLDER = "folder"
    CACHE = "cache"
    DOWNLOAD = "download"
    BUILD = "build"


@dataclass(frozen=True, slots=True)
class Sources:
    """Where to look, and what for. Only the first two are a user's concern."""

    folder: Path | None = field(default_factory=folders.default_folder)
    cache: Path = field(default_factory=default_cache)
    catalogue: Mapping[str, Binary] = field(default_factory=catalogue)
    modules: Traversable = field(default_factory=building.modules)
    patience: Patience = field(default_factory=Patience)
    platform: Platform = field(default_factory=this_platform)

    def place(self, binary: Binary) -> Place:
        """Where the cache keeps the binary."""
        return place(self.cache, binary, self.platform)


@dataclass(frozen=True, slots=True)
class Holding:
    """A binary and where it is; without a path it has to be made first."""

    binary: Binary
    path: Path | None = None
    source: Source | None = None


async def ensure(
    names: Iterable[str], *, sources: Sources | None = None, progress: Listener = lambda _: None
) -> dict[str, Path]:
    """The path of each of the named binaries; those that are missing are downloaded or built."""
    held = await provide(names, sources=sources, progress=progress)
    return {holding.binary.name: holding.path for holding in held if holding.path}


async def provide(
    names: Iterable[str], *, sources: Sources | None = None, progress: Listener = lambda _: None
) -> list[Holding]:
    """As `ensure`, and tells the source of each."""
    sources = sources or Sources()
    await sweep(sources.cache)
    held = await describe(names, sources=sources)
    missing = [holding.binary for holding in held if holding.path is None]
    if not missing:
        return held
    made = {}
    async with downloads(missing, sources.platform, sources.patience) as releases:
        for binary in missing:  # one after the other: a build keeps all cores busy by itself
            made[binary.name] = await _make(binary, sources, releases=releases, progress=progress)
    return [made.get(holding.binary.name, holding) for holding in held]


async def describe(names: Iterable[str], *, sources: Sources | None = None) -> list[Holding]:
    """What is there already of the named binaries; nothing is downloaded or built."""
    sources = sources or Sources()
    wanted = [_known(name, sources.catalogue) for name in dict.fromkeys(names)]
    in_folder = await folders.look(sources.folder, wanted)
    return [_holding(binary, in_folder, sources) for binary in wanted]


def _known(name: str, known: Mapping[str, Binary]) -> Binary:
    if name not in known:
        raise Unavailable(f"there is no binary {name!r}; there are {', '.join(sorted(known))}")
    return known[name]


def _holding(binary: Binary, in_folder: Mapping[str, Path], sources: Sources) -> Holding:
    cached = sources.place(binary).item
    if binary.name in in_folder:
        return Holding(binary, in_folder[binary.name], Source.FOLDER)
    return Holding(binary, cached, Source.CACHE) if cached.exists() else Holding(binary)


async def _make(binary: Binary, sources: Sources, *, releases: Downloads, progress: Listener) -> Holding:
    """Make a missing binary while others are kept from it, unless somebody else was faster."""
    home = sources.place(binary)
    async with reporting(binary, progress) as report, home.held(report.waits):
        if home.item.exists():
            return Holding(binary, home.item, Source.CACHE)
        reasons = [f"not in the folder {sources.folder}"] if sources.folder else []
        reasons.append(f"not in the cache {sources.cache}")
        for source in (Source.DOWNLOAD, Source.BUILD):
            try:
                with home.work() as work:
                    made = await _attempt(source, binary, sources, releases=releases, work=work, report=report)
                    return Holding(binary, await home.put(made), source)
            except SourceFailed as failure:
                reasons.append(str(failure))
        raise failures.nothing_worked(binary, reasons)


async def _attempt(
    source: Source, binary: Binary, sources: Sources, *, releases: Downloads, work: Path, report: Report
) -> Path:
    if source is Source.DOWNLOAD:
        return await releases.get(binary, sources.platform, work=work, report=report)
    return await building.build(
        binary, sources.platform, source=sources.modules, root=sources.cache, work=work, report=report
    )
