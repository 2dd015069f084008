"""What this node shares with others, seen from the resident child: its idle probes and its reservations.

Whatever the plugins' callables raise ends as words for people.
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from muster.check import Idleness, IdleProbe, Reservation

_MOST_CHARACTERS = 300


@dataclass(slots=True)
class _Asked:
    """An idle probe, and until when it wants to be left alone because it has said IDLE."""

    probe: IdleProbe
    rests_until: float = 0.0

    def ask(self, own: frozenset[int], now: float) -> tuple[Idleness, str]:
        """What the probe says, with its name and the reason if it has one."""
        try:
            idleness, why = Idleness(self.probe.probe(own)), ""
        except Exception as error:
            idleness, why = Idleness.UNKNOWN, _because(error)
        if idleness is Idleness.IDLE:
            self.rests_until = now + self.probe.interval_s
        return idleness, f"{self.probe.name}{why}"


class Sharing:
    """All idle probes and reservations of this node, each called as one."""

    def __init__(self, probes: Iterable[IdleProbe], reservations: Iterable[Reservation]) -> None:
        self._probes = [_Asked(probe) for probe in probes]
        self._reservations = tuple(reservations)

    def idleness(self, own: frozenset[int], *, afresh: bool) -> tuple[Idleness, str]:
        """IDLE only if every probe says so, BUSY if any does; with the probes that say this, and why.

        Unless it is asked `afresh`, a probe that has said IDLE is left alone for its interval.
        """
        now = time.monotonic()
        answers = [asked.ask(own, now) for asked in self._probes if afresh or now >= asked.rests_until]
        for idleness in (Idleness.BUSY, Idleness.UNKNOWN):
            if who := [name for said, name in answers if said is idleness]:
                return idleness, "; ".join(who)
        return Idleness.IDLE, ""

    def reserve(self, purpose: str) -> str | None:
        """Makes every reservation; the first that cannot be made says why, and those made before stay."""
        for reservation in self._reservations:
            try:
                reservation.reserve(purpose)
            except Exception as error:
                return f"{reservation.name}{_because(error)}"
        return None

    def give_back(self) -> str | None:
        """Releases every reservation, whatever becomes of the others; says which could not be, and why."""
        problems = []
        for reservation in self._reservations:
            try:
                reservation.release()
            except Exception as error:
                problems.append(f"{reservation.name}{_because(error)}")
        return "; ".join(problems) or None


def _because(error: Exception) -> str:
    words = " ".join(str(error).split()) or type(error).__name__
    return f": {words[:_MOST_CHARACTERS]}"
