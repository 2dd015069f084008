"""Decides which runs are sent whole, and which as repeats of one that was (see `wire.repeats`).

The idea: a run may be a repeat of a base, which is one of the last MOST_BASES runs of its check that were sent whole,
and is acknowledged as stored or precedes it in the same report. The coordinator keeps the same runs in memory. If it
does not know a base any more, because it is another coordinator or has no room, it says that there is a gap. Then all
bases are forgotten, and the first run of each check is sent whole again. If that happens again, repeats pause for a
minute, then two, up to an hour: a coordinator without room gets each run once.

Example: a report has the runs 1 to 3 of nvml, 1 whole, 2 and 3 as repeats of 1. Before it is acknowledged, the next
report has 4 whole and 5 as a repeat of 4. After that, 6 is sent as a repeat of 4.

A run takes time in proportion to its size; memory is some hundred bytes for each base.
"""

import math
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from muster.backoff import backoff_s
from muster.wire.repeats import MOST_BASES, Outline, RepeatableRun, repeat_of, repeatable_run

PAUSE_S, MAX_PAUSE_S = 60.0, 3600.0

CALM_S = 7200.0
"""After this time without a refusal, the next one counts as the first."""


class SplitRuns(NamedTuple):
    """The runs of a report: those that are sent whole, as JSON, and the repeats."""

    whole: list[str]
    repeats: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Base:
    seq: int
    outline: Outline


class RepeatedRuns:
    """The runs of one stream that others may be like, by check; the latest last. `read` reads a run in JSON."""

    def __init__(self, read: Callable[[str], RepeatableRun | None] = repeatable_run) -> None:
        self._read = read
        self._bases: dict[str, list[_Base]] = {}
        self._stored_through = 0
        self._has_repeated = False
        self._refused = 0  # times in a row
        self._refused_at = -math.inf
        self._paused_until = -math.inf

    def split(self, runs: Iterable[tuple[int, str]], sent_at: float, now: float) -> SplitRuns:
        """How these runs, numbers and JSON, are sent in a report of that time."""
        found = SplitRuns([], [])
        before: set[int] = set()  # those that go whole in this report
        for seq, body in runs:
            run = self._read(body) if now >= self._paused_until else None
            repeat = None if run is None else self._repeat(run, seq, sent_at, before)
            if repeat is None:
                found.whole.append(body)
                before.add(seq)
            else:
                found.repeats.append(repeat)
        self._has_repeated |= bool(found.repeats)
        return found

    def stored(self, through: int) -> None:
        """Notes that the coordinator has stored the runs up to `through`."""
        self._stored_through = max(self._stored_through, through)

    def start_over(self) -> None:
        """Forgets all bases: another coordinator has none of them."""
        self._bases.clear()
        self._has_repeated = False

    def refused(self, now: float) -> bool:
        """Notes a gap, perhaps because a base is not known. Returns whether what was sent had any repeats."""
        if not self._has_repeated:
            return False
        self.start_over()
        self._refused = 1 if now - self._refused_at > CALM_S else self._refused + 1
        self._refused_at = now
        if self._refused > 1:
            self._paused_until = now + backoff_s(self._refused - 1, PAUSE_S, MAX_PAUSE_S)
        return True

    def _repeat(self, run: RepeatableRun, seq: int, sent_at: float, before: Container[int]) -> dict[str, Any] | None:
        """The run as a repeat; None if it has no base, and then it may be one. Those `before` it are in its report."""
        outline = run.outline
        bases = self._bases.setdefault(run.check, [])
        for base in reversed(bases):
            is_there = base.seq < seq and (base.seq <= self._stored_through or base.seq in before)
            if is_there and base.outline.digest == outline.digest:
                self._bases[run.check] = [each for each in bases if each.seq != seq]
                repeat = repeat_of(run, seq, base.seq, sent_at)
                return repeat if base.outline.facts == outline.facts else repeat | {"facts": outline.facts}
        if all(each.seq != seq for each in bases):
            self._bases[run.check] = [*bases, _Base(seq, outline)][-MOST_BASES:]
        return None
