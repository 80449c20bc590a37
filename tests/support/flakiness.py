"""A pytest plugin that runs failed tests again: a test that fails beside others and passes alone is flaky.

Used by `make test` (`--classify`) after the run. If every failure passes alone, the exit code is 0 and the last section
lists the flaky tests with their reasons. Interrupted runs and collection errors keep their exit code.
"""

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

MAX_RERUNS = 30  # tests: a failing fixture of a folder is about that many; more take too long
DEADLINE = 900.0  # seconds for one test with its clusters; pytest-timeout ends most of them earlier


def pytest_addoption(parser: pytest.Parser) -> None:
    """Register `--classify`."""
    parser.addoption(
        "--classify",
        action="store_true",
        help="run each failed test again, alone; print those that pass as FLAKY, and exit with 0 if all of them pass",
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """Classify the failures after pytest's own summary, in the process that started the others."""
    result = yield
    # With xdist, the hook runs in the workers too; only the controller has the reports of all tests.
    if session.config.getoption("classify") and not hasattr(session.config, "workerinput"):
        _classify(session)
    return result


def _classify(session: pytest.Session) -> None:
    terminal: pytest.TerminalReporter | None = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None:
        return
    reports = [*terminal.stats.get("failed", ()), *terminal.stats.get("error", ())]
    failures = reasons(reports)
    if not failures:
        return
    if len(failures) > MAX_RERUNS:
        terminal.section(f"{len(failures)} tests failed, more than {MAX_RERUNS}: not run again")
        return
    terminal.section(f"{counted(len(failures))} failed, running again alone")
    flaky: list[str] = []
    failed: list[str] = []
    for nodeid, reason in failures.items():
        passed = passes_alone(nodeid, session.config.rootpath)
        (flaky if passed else failed).append(f"{nodeid}: {reason}")
        terminal.write_line(f"{'passed' if passed else 'failed'} alone: {nodeid}", flush=True)
    _print_section(terminal, "FAILED", "failed beside others and alone", failed)
    _print_section(terminal, "FLAKY", "failed beside others and passed alone", flaky)
    if not failed and is_complete(session, reports):
        session.exitstatus = pytest.ExitCode.OK


def _print_section(terminal: pytest.TerminalReporter, word: str, what: str, lines: list[str]) -> None:
    if lines:
        terminal.section(f"{word}: {counted(len(lines))} {what}")
        for line in lines:
            terminal.write_line(f"{word} {line}", flush=True)


def is_complete(session: pytest.Session, reports: list[pytest.TestReport | pytest.CollectReport]) -> bool:
    """Whether every selected test ran: not after `-x`, Ctrl-C, or an error in collection."""
    collected = not any(isinstance(report, pytest.CollectReport) for report in reports)
    was_stopped = session.shouldfail or session.shouldstop
    return session.exitstatus == pytest.ExitCode.TESTS_FAILED and collected and not was_stopped


def reasons(reports: list[pytest.TestReport | pytest.CollectReport]) -> dict[str, str]:
    """The first line of the first failure of each test, by node id."""
    found: dict[str, str] = {}
    for report in reports:
        if isinstance(report, pytest.TestReport):
            stage = f"{report.when}: " if report.when in {"setup", "teardown"} else ""
            found.setdefault(report.nodeid, f"{stage}{reason(report)}")
    return found


def reason(report: pytest.TestReport) -> str:
    """The first line of the exception's message, or the last line of the report if it has no exception."""
    crash = getattr(report.longrepr, "reprcrash", None)
    lines: list[str] = (crash.message if crash else report.longreprtext).strip().splitlines()
    if not lines:
        return "no reason was reported"
    return lines[0] if crash else lines[-1]


def passes_alone(nodeid: str, folder: Path) -> bool:
    """Run one test in a new process, with nothing beside it."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", nodeid]
    null = subprocess.DEVNULL
    try:
        ended = subprocess.run(argv, cwd=folder, timeout=DEADLINE, check=False, stdin=null, stdout=null, stderr=null)
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == pytest.ExitCode.OK


def counted(number: int) -> str:
    """The number with its noun."""
    return f"{number} test" if number == 1 else f"{number} tests"
