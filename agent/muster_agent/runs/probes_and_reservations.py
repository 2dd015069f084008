"""Asks all idle probes and makes all reservations of this node, in the resident child.

The probes run concurrently, each in its own thread. Therefore a probe that waits for a remote server does not delay the
others. An exception of a probe or reservation becomes text for people.
"""

import time
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed

from muster.check import Idleness, IdleProbe, Reservation

ANSWER_WITHIN_S = 0.9
"""Share of a probe's second for its answer. A probe that has not answered by then counts as UNKNOWN."""

_MOST_CHARACTERS = 300


class _RestingProbe:
    """An idle probe with its thread, and the time until which it rests because it has said IDLE."""

    def __init__(self, probe: IdleProbe) -> None:
        self.probe = probe
        self.rests_until = 0.0
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=probe.name)

    def ask(self, own: frozenset[int]) -> Future[tuple[Idleness, str]]:
        """Asks the probe as soon as it has answered the previous question."""
        return self._thread.submit(self._answer, own)

    def _answer(self, own: frozenset[int]) -> tuple[Idleness, str]:
        """The probe's answer, and its name with the reason if it gives one."""
        now = time.monotonic()
        try:
            idleness, why = Idleness(self.probe.probe(own)), ""
        except Exception as error:
            idleness, why = Idleness.UNKNOWN, _because(error)
        if idleness is Idleness.IDLE:
            self.rests_until = now + self.probe.interval_s
        return idleness, f"{self.probe.name}{why}"


class ProbesAndReservations:
    """All idle probes and reservations of this node, each called as one."""

    def __init__(self, probes: Iterable[IdleProbe], reservations: Iterable[Reservation]) -> None:
        self._probes = [_RestingProbe(probe) for probe in probes]
        self._reservations = tuple(reservations)

    def idleness(self, own: frozenset[int], *, afresh: bool) -> tuple[Idleness, str]:
        """IDLE if every probe says so, BUSY as soon as one does, else UNKNOWN; with the names of these probes and why.

        Without `afresh`, a probe that has said IDLE is not asked again for its interval.
        """
        now = time.monotonic()
        silent = {one.ask(own): one.probe.name for one in self._probes if afresh or now >= one.rests_until}
        unknown = []
        try:
            for question in as_completed([*silent], ANSWER_WITHIN_S):
                idleness, who = question.result()
                del silent[question]
                if idleness is Idleness.BUSY:
                    return idleness, who
                if idleness is Idleness.UNKNOWN:
                    unknown.append(who)
        except TimeoutError:
            unknown += [f"{name}: no answer within {ANSWER_WITHIN_S:g} s" for name in silent.values()]
        finally:
            for question in silent:
                question.cancel()
        return (Idleness.UNKNOWN, "; ".join(unknown)) if unknown else (Idleness.IDLE, "")

    def reserve(self, purpose: str) -> str | None:
        """Makes every reservation. Stops at the first that fails and returns why; earlier ones stay."""
        for reservation in self._reservations:
            try:
                reservation.reserve(purpose)
            except Exception as error:
                return f"{reservation.name}{_because(error)}"
        return None

    def give_back(self) -> str | None:
        """Releases every reservation, even if one fails. Returns the names and reasons of those that failed."""
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
