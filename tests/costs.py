"""What tests cost in processor time, child processes included: `make costs`, or pytest with `-p tests.costs`.

Wall time says little: a test that waits costs nothing, and on a busy machine everything takes long. A child process
counts when its parent has waited for it. What outlives a test, as an agent that a whole file shares, counts for the
test during which it ends.
"""

import resource
from collections import Counter
from collections.abc import Generator
from pathlib import PurePosixPath

import pytest
from tests.muster_process import started

SHOWN = 40


def processor_seconds() -> float:
    """What this process and the children that it has waited for have used so far."""
    usage = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in usage) + sum(each.used_s for each in started)


class _Meter:
    """Runs where the tests run: each report of a phase carries what was used since the last one."""

    def __init__(self) -> None:
        self._mark = 0.0

    def pytest_collection_finish(self) -> None:
        self._mark = processor_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = processor_seconds()
        report.__dict__["processor_s"] = now - self._mark
        self._mark = now
        return report


class _Bill:
    """Runs where the reports arrive, and prints the sums at the end."""

    def __init__(self) -> None:
        self._tests: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._tests[report.nodeid] += report.__dict__.get("processor_s", 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        files: Counter[str] = Counter()
        directories: Counter[str] = Counter()
        for test, seconds in self._tests.items():
            file = test.partition("::")[0]
            files[file] += seconds
            directories["/".join(PurePosixPath(file).parts[:2])] += seconds
        for title, bill in (("directory", directories), ("file", files), ("test", self._tests)):
            terminalreporter.section(f"processor seconds by {title}")
            for name, seconds in bill.most_common(SHOWN):
                terminalreporter.write_line(f"{seconds:8.2f}  {name}")
        terminalreporter.write_line(f"{self._tests.total():8.2f}  all tests, without collecting them")


def pytest_configure(config: pytest.Config) -> None:
    """Meters in every process, and adds up in the one that the terminal sees."""
    config.pluginmanager.register(_Meter())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Bill())
