"""Lets another process have a share of a core only, without rights that a container may not have."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

TURN_S = 0.025
LOOK_S = 0.002


@contextmanager
def slowed(pid: int, share: float) -> Iterator[None]:
    """Lets a process have this share of a core only: it stands still from when it has used what it may in a turn."""
    ended = threading.Event()
    clock = (~pid << 3) | 2  # the clock of what the process uses, as clock_getcpuclockid(3) returns it

    def take_turns() -> None:
        left_s, looked_at, used_s = 0.0, time.monotonic(), time.clock_gettime(clock)
        stands = False
        while not ended.wait(LOOK_S):
            now, used_now_s = time.monotonic(), time.clock_gettime(clock)
            left_s = min(left_s + share * (now - looked_at), share * TURN_S) - (used_now_s - used_s)
            looked_at, used_s = now, used_now_s
            if stands != (left_s <= 0.0):
                stands = not stands
                os.kill(pid, signal.SIGSTOP if stands else signal.SIGCONT)
        os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=take_turns)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
