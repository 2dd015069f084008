"""Decides which runs of the outbox wait for others, so that they travel together.

The idea: most runs find nothing and nobody waits for them. A report of ten runs costs broker and coordinator little
more than a report of one. So the coordinator says in each acknowledgement how long such runs may wait (`hold_s`); in a
small fleet that is no time at all. Any other run releases itself and all that wait before it: a run that somebody has
asked for, one with another verdict or other findings than before, and the first runs of a check. A failure is cleared
by two passes in a row, so it takes `STEADY_RUNS` equal runs until the next one may wait.

A run of a group that finds nothing may always wait: a reply of its own tells the sweep what the node has measured. If a
sweep of the whole fleet released all that waits, the coordinator would get the reports of its longest wait at once.

A failure is urgent until it has come `STEADY_RUNS` times: an overloaded coordinator takes it before other runs.

Example: `hold_s` is 45. nvml passes at 0, 15, 30, 45 and 60 s. The agent sends the first three without a wait, and
would send those of 45 and 60 s together at 90 s. At 75 s nvml fails: the agent sends all three.

A step takes constant time; memory is one entry for each check.
"""

import math
from dataclasses import dataclass

from muster.model import Run, Verdict
from muster.wire.scheduled_runs import QUIET_VERDICTS, SCHEDULED

STEADY_RUNS = 3

Result = tuple[Verdict, tuple[tuple[str, int | None], ...]]


@dataclass(slots=True)
class _Steady:
    """The last result of a check, and how many runs in a row had it."""

    result: Result
    runs: int = 0


class ReportTiming:
    """The runs of the outbox that may be sent: those with numbers up to `released_through`.

    `urgent_through` is the number of the last run that is urgent.
    """

    def __init__(self, last: int) -> None:
        self.released_through = last
        self.urgent_through = 0
        self.hold_s = 0.0
        self._waits_through = last
        self._due = math.inf
        self._checks: dict[str, _Steady] = {}

    def appended(self, run: Run, now: float) -> None:
        """Notes a new run, which has its number."""
        self._waits_through = run.seq
        runs = self._equal_runs(run)
        if run.verdict is Verdict.FAIL and runs <= STEADY_RUNS:
            self.urgent_through = run.seq
        if self.hold_s > 0 and _may_wait(run, runs):
            self._due = min(self._due, now + self.hold_s)
        else:
            self.release()

    def release(self) -> None:
        """Releases all runs."""
        self.released_through, self._due = self._waits_through, math.inf

    def tick(self, now: float) -> None:
        """Releases all runs if one has waited for long enough."""
        if now >= self._due:
            self.release()

    def next_due(self) -> float:
        """When the runs that wait are to be released; infinity if none waits."""
        return self._due

    def _equal_runs(self, run: Run) -> int:
        """How many runs in a row had the result of this one, which is among them."""
        result = run.verdict, tuple((finding.code, finding.device) for finding in run.findings)
        steady = self._checks.get(run.check)
        if steady is None or steady.result != result:
            steady = self._checks[run.check] = _Steady(result)
        steady.runs += 1
        return steady.runs


def _may_wait(run: Run, equal_runs: int) -> bool:
    nobody_waits = run.group is not None or (run.cause == SCHEDULED and equal_runs > STEADY_RUNS)
    return nobody_waits and run.verdict in QUIET_VERDICTS
