"""Evaluation and planning are pure: no I/O, no clock, no randomness. Only these folders may do more."""

import ast
from pathlib import Path

import pytest

import hansa.scheduling

FOLDER = Path(hansa.scheduling.__file__).parent
WITH_IO = ("extender", "pooling", "watching")
DESCHEDULER = FOLDER / "descheduling" / "descheduler.py"
PURE = [
    path
    for path in sorted(FOLDER.rglob("*.py"))
    if path.relative_to(FOLDER).parts[0] not in WITH_IO and path != DESCHEDULER
]
IMPURE = (
    *("asyncio", "time", "random", "logging", "hansa.control", "hansa.engine"),
    *(f"hansa.scheduling.{folder}" for folder in WITH_IO),
)
ALLOWED_OF_KUBE = ("language", "objects")


def imported(path: Path) -> set[str]:
    """The modules that a file imports, and the names that it takes from packages."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Import(names):
                found |= {name.name for name in names}
            case ast.ImportFrom(module=str(module), names=names):
                found |= {module, *(f"{module}.{name.name}" for name in names)}
    return found


@pytest.mark.parametrize("path", PURE, ids=lambda path: str(path.relative_to(FOLDER)))
def test_what_decides_imports_nothing_that_acts(path):
    names = imported(path)
    assert not [name for name in names for word in IMPURE if name == word or name.startswith(f"{word}.")]
    of_kube = {name.split(".")[2] for name in names if name.startswith("hansa.kube.")}
    assert of_kube <= set(ALLOWED_OF_KUBE)


def test_the_core_knows_nothing_of_slices():
    core = [path for path in PURE if path.parent == FOLDER]
    assert len(core) > 10
    assert not [path for path in core if any(name.startswith("hansa.scheduling.slicing") for name in imported(path))]
