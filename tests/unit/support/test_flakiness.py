"""The exit code and the closing section of `--classify`, in pytest runs of their own."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import flakiness

TESTS = """
from pathlib import Path
import os
import pytest

@pytest.fixture
def broken():
    raise RuntimeError("no cluster")

@pytest.fixture
def leaking():
    yield
    assert not is_first("teardown"), "a process is left"

def is_first(name):
    seen = Path(__file__).with_name(name)
    first = not seen.exists()
    seen.touch()
    return first

def test_passes():
    pass

def test_fails():
    assert 1 == 2, "one is not two"

def test_has_no_fixture(broken):
    pass

def test_passes_the_second_time():
    assert not is_first("call"), "too early"

def test_leaks_the_first_time(leaking):
    pass

def test_crashes_the_first_time():
    if is_first("crash"):
        os._exit(1)

@pytest.mark.parametrize("number", range(31))
def test_many(number):
    assert not is_first(f"many-{number}"), "too early"
"""
PASSES, FAILS, FLAKY, LEAKS = "test_passes", "test_fails", "test_passes_the_second_time", "test_leaks_the_first_time"
HOW = [pytest.param((), id="one process"), pytest.param(("-p", "xdist", "-n", "4"), id="xdist")]


@dataclass
class Ended:
    """The end of a pytest run."""

    code: int
    output: str

    @property
    def classified(self) -> list[str]:
        """The lines of the sections that this plugin prints."""
        _, _, after = self.output.partition("running again alone")
        return [line for line in after.splitlines() if line.startswith(("FLAKY", "FAILED"))]


def run(folder: Path, *arguments: str, names: tuple[str, ...] = ()) -> Ended:
    (folder / "conftest.py").write_text('pytest_plugins = ["flakiness"]\n')
    (folder / "test_it.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\n")
    selected = [f"test_it.py::{name}" for name in names]
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments, *selected]
    env = {**os.environ, "PYTHONPATH": str(Path(flakiness.__file__).parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ended = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=100, check=False)
    return Ended(ended.returncode, ended.stdout)


@pytest.mark.parametrize("how", HOW)
def test_failures_that_pass_alone_are_printed_as_flaky_and_the_run_passes(tmp_path: Path, how: tuple[str, ...]) -> None:
    ended = run(tmp_path, "--classify", *how, names=(PASSES, FLAKY, LEAKS))
    assert ended.code == 0
    assert sorted(ended.classified) == [
        f"FLAKY test_it.py::{LEAKS}: teardown: AssertionError: a process is left",
        f"FLAKY test_it.py::{FLAKY}: AssertionError: too early",
    ]
    *_, title, _, _ = ended.output.splitlines()
    assert " FLAKY: 2 tests failed beside others and passed alone " in title, "it is the last section"


@pytest.mark.parametrize("how", HOW)
def test_a_failure_that_fails_again_alone_fails_the_run(tmp_path: Path, how: tuple[str, ...]) -> None:
    ended = run(tmp_path, "--classify", *how, names=(PASSES, FAILS, FLAKY, "test_has_no_fixture"))
    assert ended.code == 1
    assert sorted(ended.classified) == [
        f"FAILED test_it.py::{FAILS}: AssertionError: one is not two",
        "FAILED test_it.py::test_has_no_fixture: setup: RuntimeError: no cluster",
        f"FLAKY test_it.py::{FLAKY}: AssertionError: too early",
    ]


def test_a_test_whose_process_crashed_runs_again(tmp_path: Path) -> None:
    ended = run(tmp_path, "--classify", "-p", "xdist", "-n", "2", names=(PASSES, "test_crashes_the_first_time"))
    [line] = ended.classified
    assert ended.code == 0
    assert line.startswith("FLAKY test_it.py::test_crashes_the_first_time: worker 'gw")


@pytest.mark.parametrize("how", HOW)
def test_more_failures_than_the_limit_are_not_run_again_and_fail_the_run(tmp_path: Path, how: tuple[str, ...]) -> None:
    ended = run(tmp_path, "--classify", *how, names=("test_many",))
    assert ended.code == 1
    assert " 31 tests failed, more than 30: not run again " in ended.output
    assert run(tmp_path, names=("test_many",)).code == 0, "each ran once before"


def test_a_run_that_stopped_early_fails_although_its_failure_passes_alone(tmp_path: Path) -> None:
    ended = run(tmp_path, "--classify", "-x", names=(FLAKY, PASSES))
    assert ended.code == 1
    assert ended.classified == [f"FLAKY test_it.py::{FLAKY}: AssertionError: too early"]


def test_a_file_that_cannot_be_collected_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "test_broken.py").write_text("import nothing_of_this_name\n")
    arguments = ("--classify", "--continue-on-collection-errors", "test_broken.py")
    assert run(tmp_path, *arguments, names=(FLAKY,)).code == 1


def test_a_run_that_passes_runs_nothing_again(tmp_path: Path) -> None:
    ended = run(tmp_path, "--classify", names=(PASSES,))
    assert (ended.code, ended.classified) == (0, [])


def test_without_the_option_nothing_runs_again(tmp_path: Path) -> None:
    assert run(tmp_path, names=(FLAKY,)).code == 1
    assert run(tmp_path, names=(FLAKY,)).code == 0, "it ran once before"
