"""A test that fails beside others and passes alone is printed as flaky, and fails the run."""

import os
import subprocess
import sys
from pathlib import Path

import flakiness

TESTS = """
from pathlib import Path
import pytest

@pytest.fixture
def broken():
    raise RuntimeError("no cluster")

def test_passes():
    pass

def test_fails():
    assert 1 == 2, "one is not two"

def test_has_no_fixture(broken):
    pass

def test_passes_the_second_time():
    seen = Path(__file__).with_name("seen")
    first = not seen.exists()
    seen.touch()
    assert not first, "too early"
"""


def run(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    (folder / "conftest.py").write_text('pytest_plugins = ["flakiness"]\n')
    (folder / "test_it.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\n")
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
    env = {**os.environ, "PYTHONPATH": str(Path(flakiness.__file__).parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ended = subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=100, check=False)
    _, _, classified = ended.stdout.partition("failed tests, run again alone")
    return ended.returncode, [line for line in classified.splitlines() if line.startswith(("FLAKY", "FAILED"))]


def test_a_failure_is_flaky_if_the_test_passes_alone(tmp_path: Path) -> None:
    code, classified = run(tmp_path, "--classify")
    assert code == 1
    [fails, flaky, broken] = classified
    assert fails.startswith("FAILED test_it.py::test_fails: AssertionError: one is not two")
    assert flaky.startswith("FLAKY test_it.py::test_passes_the_second_time: AssertionError: too early")
    assert broken == "FAILED test_it.py::test_has_no_fixture: setup: RuntimeError: no cluster"


def test_a_run_that_passes_classifies_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, "--classify", "test_it.py::test_passes") == (0, [])


def test_without_the_option_nothing_is_run_again(tmp_path: Path) -> None:
    code, classified = run(tmp_path)
    assert (code, classified, (tmp_path / "seen").exists()) == (1, [], True)
    assert run(tmp_path, "test_it.py::test_passes_the_second_time") == (0, []), "it had been run once only"
