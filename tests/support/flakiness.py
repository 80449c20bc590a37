"""A pytest plugin that classifies failures: a test that fails beside others and passes alone is flaky.

`make test` uses it (`--classify`). When the run is over, each test that failed is run again in a pytest of its own,
and printed as FLAKY or FAILED with the reason of its first failure. The exit code stays that of the first run: a flaky
test is a fault of the test or of the product, and fails the run. Errors of collection are not run again.
"""

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

MOST = 20  # tests; so many failures have one cause, and running them again takes long
DEADLINE = 900.0  # seconds for one test with its clusters; pytest-timeout ends most of them earlier


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register the option."""
    parser.addoption(
        "--classify", action="store_true", help="run each failed test again, alone, and print it as FLAKY or FAILED"
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> Generator[None, None, None]:
    """Classify what failed, below pytest's own summary, after the sessions of all processes have ended."""
    yield
    if config.getoption("classify"):
        classify(terminalreporter, config.rootpath)


def classify(terminalreporter: pytest.TerminalReporter, folder: Path) -> None:
    """Print each test that failed as FLAKY or FAILED."""
    failures = reasons([*terminalreporter.getreports("failed"), *terminalreporter.getreports("error")])
    if not failures:
        return
    terminalreporter.section("failed tests, run again alone")
    for number, (nodeid, reason) in enumerate(failures.items()):
        is_flaky = number < MOST and passes_alone(nodeid, folder)
        terminalreporter.write_line(f"{'FLAKY' if is_flaky else 'FAILED'} {nodeid}: {reason}", flush=True)
    if len(failures) > MOST:
        terminalreporter.write_line(f"only the first {MOST} of {len(failures)} were run again")


def reasons(reports: list[pytest.TestReport | pytest.CollectReport]) -> dict[str, str]:
    """The first line of the first failure of each test, by node id."""
    found: dict[str, str] = {}
    for report in reports:
        if isinstance(report, pytest.TestReport):
            stage = "" if report.when == "call" else f"{report.when}: "
            found.setdefault(report.nodeid, f"{stage}{reason(report)}")
    return found


def reason(report: pytest.TestReport) -> str:
    """The message of the exception, or the last line of what is known."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (crash.message if crash else report.longreprtext).strip().splitlines() or ["no reason was reported"]
    return lines[0] if crash else lines[-1]


def passes_alone(nodeid: str, folder: Path) -> bool:
    """Run one test in a new process, with nothing beside it."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", nodeid]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        ended = subprocess.run(argv, cwd=folder, timeout=DEADLINE, check=False, **quiet)
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == pytest.ExitCode.OK
