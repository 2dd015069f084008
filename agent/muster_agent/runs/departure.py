"""Watches whether this node leaves or restarts as planned, in threads of the resident child."""

import time
from collections.abc import Callable, Sequence
from threading import Lock, Thread

from muster.check import DepartureProbe

Tell = Callable[[str | None], None]
"""Takes why the node leaves; None when it stays."""

Fail = Callable[[str, Exception], None]
"""Takes the name of a probe that raised, and its error."""


class DepartureWatch:
    """Asks all probes for ever, each in a thread of its own, and calls `tell` when what they say together changes."""

    def __init__(self, probes: Sequence[DepartureProbe], tell: Tell, fail: Fail) -> None:
        self._tell = tell
        self._fail = fail
        self._reasons: dict[str, str | None] = {probe.name: None for probe in probes}
        self._told: str | None = None
        self._turn = Lock()
        for probe in probes:
            Thread(target=self._ask, args=(probe,), name=f"departure-{probe.name}", daemon=True).start()

    def _ask(self, probe: DepartureProbe) -> None:
        while True:
            try:
                self._note(probe.name, probe.probe())
            except Exception as error:
                self._fail(probe.name, error)
                return
            time.sleep(probe.interval_s)

    def _note(self, name: str, reason: str | None) -> None:
        with self._turn:
            self._reasons[name] = reason
            first = next((each for each in self._reasons.values() if each), None)
            if first != self._told:
                self._told = first
                self._tell(first)
