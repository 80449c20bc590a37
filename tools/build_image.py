#!/usr/bin/env python3
"""Builds the image of Hansa as an OCI archive, offline: this interpreter, its shared libraries, and the wheel.

Used by `make image` and by the tests that run Hansa in clusters. Users build deploy/Dockerfile, which has the same
entrypoint and user. The same sources give the same archive, which is not built again.
"""

import argparse
import compileall
import hashlib
import importlib.metadata
import os
import platform
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from hansa.local.machines import oci
from hansa.local.machines.oci import Image

ROOT = Path(__file__).resolve().parents[1]
HOME = "/opt/python"  # in the image
PYTHON = f"python{sys.version_info.major}.{sys.version_info.minor}"
# Not needed by a server: tests, graphics, terminals, databases, installers.
LEFT_OUT = {
    *("__pycache__", "site-packages", "test", "tests", "idlelib", "ensurepip", "tkinter", "turtledemo", "lib2to3"),
    *("pydoc_data", "venv", "curses", "dbm", "sqlite3", "unittest", "distutils", "turtle.py", "pydoc.py"),
}
LEFT_OUT_MODULES = re.compile(
    r"^(_tkinter|_test|_ctypes_test|_xx|xx|_sqlite3|_curses|readline|_dbm|_gdbm|nis|ossaudiodev)"
)
ENTRY = f"""#!{HOME}/bin/{PYTHON} -I
import sys

from hansa.cli.main import main

sys.exit(main())
"""


def main() -> None:
    """Build the archive that the arguments name, if it is not there for these sources already."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive", type=Path, nargs="?", default=ROOT / "dist" / "hansa-image.tar")
    parser.add_argument("--tag", action="append", default=[], help="further tags (default: the version)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hansa-image-") as folder:
        print(build(arguments.archive, arguments.tag, Path(folder)))


def build(archive: Path, tags: Iterable[str], folder: Path) -> Path:
    """The archive, built in a folder unless there is one with the same key beside it."""
    wheel = _wheel(folder)
    key, known = _key(wheel, tags), archive.with_suffix(".key")
    if archive.exists() and known.exists() and known.read_text() == key:
        return archive
    tree = folder / "tree"
    _stage(tree, wheel)
    files = {f"/{path.relative_to(tree)}": path for path in sorted(tree.rglob("*")) if path.is_file()}
    version = importlib.metadata.version("hansa")
    references = [f"docker.io/library/hansa:{tag}" for tag in (version, *tags)]
    image = Image(
        references[0],
        {},
        entrypoint=("hansa",),
        files=files,
        environment={"PYTHONUNBUFFERED": "1"},
        user=oci.USER,
        aliases=tuple(references[1:]),
    )
    archive.parent.mkdir(parents=True, exist_ok=True)
    known.unlink(missing_ok=True)
    draft = archive.with_suffix(".draft")
    oci.build([image], draft)
    draft.replace(archive)
    known.write_text(key)
    return archive


def _wheel(folder: Path) -> Path:
    command = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    [wheel] = folder.glob("*.whl")
    return wheel


def _key(wheel: Path, tags: Iterable[str]) -> str:
    """A key of everything in the archive."""
    with zipfile.ZipFile(wheel) as content:
        files = sorted((one.filename, one.CRC) for one in content.infolist())
    versions = sorted(f"{one.name}=={one.version}" for one in _dependencies())
    code = [Path(one).read_bytes() for one in (__file__, oci.__file__)]
    parts = (files, versions, sys.version, platform.machine(), tuple(tags), code)
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _stage(tree: Path, wheel: Path) -> None:
    """All files of the image below a folder."""
    home = tree / HOME[1:]
    library, site = home / "lib" / PYTHON, home / "lib" / PYTHON / "site-packages"
    _copy(Path(os.path.realpath(sys.executable)), home / "bin" / PYTHON)
    shutil.copytree(sysconfig.get_path("stdlib"), library, symlinks=False, ignore=_ignored)
    for dependency in _dependencies():
        _install(dependency, site)
    with zipfile.ZipFile(wheel) as content:
        content.extractall(site)
    same = py_compile.PycInvalidationMode.UNCHECKED_HASH  # the same bytes at each build
    compileall.compile_dir(home, quiet=2, stripdir=str(tree), prependdir="/", invalidation_mode=same, force=True)
    entry = tree / "usr" / "local" / "bin" / "hansa"
    entry.parent.mkdir(parents=True)
    entry.write_text(ENTRY)
    entry.chmod(0o755)
    for at, source in _libraries([home / "bin" / PYTHON, *home.rglob("*.so")]).items():
        _copy(source, tree / at[1:])


def _ignored(_folder: str, names: list[str]) -> set[str]:
    return {
        name
        for name in names
        if name in LEFT_OUT or name.startswith("config-") or name.endswith(".a") or LEFT_OUT_MODULES.match(name)
    }


def _dependencies() -> list[importlib.metadata.Distribution]:
    """The distributions that Hansa needs at run time, and those that they need."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = ["hansa"]
    while waiting:
        distribution = importlib.metadata.distribution(waiting.pop())
        for line in distribution.requires or ():
            requirement, _, marker = line.partition(";")
            name = re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")
            if name not in found and "extra ==" not in marker and _is_installed(name):
                found[name] = importlib.metadata.distribution(name)
                waiting.append(name)
    return [found[name] for name in sorted(found)]


def _is_installed(name: str) -> bool:
    # A requirement whose marker does not hold here is not installed.
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def _install(distribution: importlib.metadata.Distribution, site: Path) -> None:
    for file in distribution.files or ():
        if (
            ".." not in file.parts
            and "__pycache__" not in file.parts
            and file.suffix not in {".pyx", ".pxd", ".c", ".h"}
        ):
            _copy(Path(str(file.locate())), site / file)


def _libraries(binaries: Iterable[Path]) -> dict[str, Path]:
    """The shared libraries of programs, where the loader of the image finds them: beside libc."""
    found: dict[str, Path] = {}
    for binary in binaries:
        found |= dict(_linked(binary))
    [beside] = {Path(path).parent for path in found if Path(path).name == "libc.so.6"}
    return {path if "ld-linux" in path else str(beside / Path(path).name): source for path, source in found.items()}


def _linked(binary: Path) -> Iterator[tuple[str, Path]]:
    """The libraries of a program, as the loader finds them here: path and file."""
    shown = subprocess.run(("ldd", str(binary)), capture_output=True, text=True, check=True)
    for line in shown.stdout.splitlines():
        if match := re.search(r"(?:=> )?(/\S+) \(0x", line):
            yield match[1], Path(os.path.realpath(match[1]))


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


if __name__ == "__main__":
    main()
