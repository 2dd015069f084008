"""Selects the tests of `make quick`: all that do without the fixture `live`.

The fixture `live` is for tests that start processes, open connections or sleep. A test without it that does so fails.
Used with `-p tests.pure`.
"""

import sys
from collections.abc import Iterator
from typing import Any

import pytest

FORBIDDEN = {
    "os.fork",
    "os.posix_spawn",
    "os.system",
    "socket.bind",
    "socket.connect",
    "subprocess.Popen",
    "time.sleep",
}
"""Audit events; https://docs.python.org/3/library/audit_events.html has them all."""

_watching: list[str] = []


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and event in FORBIDDEN:
        raise AssertionError(f"{event}{arguments} in a test of make quick; mark it with usefixtures('live')")


def pytest_configure() -> None:
    """Starts to watch. An audit hook cannot be removed, so it looks itself whether a test runs."""
    sys.addaudithook(_refuse)


@pytest.hookimpl(trylast=True)  # after the tests have been sorted
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out every test that uses `live`, itself or through another fixture."""
    config.hook.pytest_deselected(items=[item for item in items if _is_live(item)])
    items[:] = [item for item in items if not _is_live(item)]


def _is_live(item: pytest.Item) -> bool:
    return "live" in getattr(item, "fixturenames", ())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Watches while a test and its fixtures run."""
    _watching.append(item.nodeid)
    try:
        return (yield)
    finally:
        _watching.clear()
