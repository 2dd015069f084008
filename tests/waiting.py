"""Waiting for what other processes do."""

import select
import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_S = 90.0
"""Longer than anything takes on a busy machine."""

SHORTEST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 0.5

T = TypeVar("T")


def wait_for(read: Callable[[], T | None], what: str, longest_pause_s: float = LONGEST_PAUSE_S) -> T:
    """The first true value of `read`.

    The longer it takes, the less often it is read: most reads are requests that cost the coordinator as much as the
    test. The pauses are a twentieth of the time so far, and so a wait takes hardly longer for them. What is true only
    for a moment needs shorter ones.
    """
    began = time.monotonic()
    while not (value := read()):
        waited_s = time.monotonic() - began
        assert waited_s < PATIENCE_S, f"waited too long for: {what}"
        time.sleep(min(max(SHORTEST_PAUSE_S, waited_s / 20), longest_pause_s))
    return value


def can_be_read(descriptor: int, within_s: float | None) -> bool:
    """Waits until there is something to read. `poll` takes any descriptor, `select` only those below 1024."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if within_s is None else 1000 * within_s))
