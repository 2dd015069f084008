"""Waiting for what other processes do."""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_S = 90.0
"""Longer than anything takes on a busy machine."""

T = TypeVar("T")


def wait_for(read: Callable[[], T | None], what: str) -> T:
    """The first true value of `read`."""
    deadline = time.monotonic() + PATIENCE_S
    while not (value := read()):
        assert time.monotonic() < deadline, f"waited too long for: {what}"
        time.sleep(0.02)
    return value
