"""Shows a text again and again, until Ctrl-C."""

import shutil
import sys
import time
from collections.abc import Callable

from muster.errors import Unavailable
from muster.terminal import clear_screen, say
from muster_coordinator.cli.polling import pause

WATCH_S = 2.0
"""Interval between two queries."""


def watch(make: Callable[[], str]) -> None:
    """Shows what `make` returns in place of what it returned before; in a pipe, one after the other.

    While the coordinator does not answer, the last text stays, with the reason above it.
    """
    text = ""
    try:
        while True:
            asked_at = time.monotonic()
            problem = ""
            try:
                text = make()
            except Unavailable as error:
                problem = f"{error}\n"
            _show(f"{problem}{text}")
            pause(asked_at, WATCH_S)
    except KeyboardInterrupt:
        return


def _show(text: str) -> None:
    if sys.stdout.isatty():
        lines, height = text.splitlines(), shutil.get_terminal_size().lines
        if len(lines) >= height:
            lines[height - 2 :] = [f"… {len(lines) - height + 2} more lines"]
        clear_screen()
        say("\n".join(lines))
    else:
        say(f"{text}\n")
