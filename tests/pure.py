"""Holds the tests of `make quick` to what makes them quick: no processes, no connections, no sleeping.

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
        raise AssertionError(f"{event}{arguments} in a test of make quick; it belongs into another directory")


def pytest_configure() -> None:
    """An audit hook stays for good, so that it looks itself whether a test runs."""
    sys.addaudithook(_refuse)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Watches while a test and its fixtures run."""
    _watching.append(item.nodeid)
    try:
        return (yield)
    finally:
        _watching.clear()
