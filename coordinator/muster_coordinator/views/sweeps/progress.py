"""The progress of a running sweep: one line for each round, and one for each group that did not pass."""

import os
from collections import Counter
from typing import TextIO

from muster.model import Verdict
from muster.nouns import count
from muster.terminal import in_one_line
from muster_coordinator.model.sweep_records import GroupRecord, GroupState, RoundRecord, SweepRecord
from muster_coordinator.views.sweeps.rounds import group_line

_PHASES = {
    GroupState.FORMING: "forming",
    GroupState.ELECTED: "forming",
    GroupState.READY: "running",
    GroupState.RUNNING: "running",
}

_ENDS = {Verdict.PASS: "passed", Verdict.WARN: "passed", Verdict.FAIL: "failed"}

_IN_ORDER = ("passed", "failed", "without result", "running", "forming", "waiting")

_STEPS = 10
"""Without a terminal, a round gets a new line whenever another tenth of its groups has ended."""

_USUAL_COLUMNS = 80

_FROM_THE_START = "\r\x1b[K"
"""Clears the present line of a terminal."""


def round_line(stage: RoundRecord) -> str:
    """The number of groups of a round by phase."""
    counts = Counter(map(_phase, stage.groups))
    counts["waiting"] = stage.waiting
    phases = ", ".join(f"{counts[phase]} {phase}" for phase in _IN_ORDER if counts[phase])
    return f"round {stage.number}: {count(len(stage.groups) + stage.waiting, 'group')}: {phases}"


def _phase(group: GroupRecord) -> str:
    if group.verdict is None:
        return _PHASES.get(group.state, "without result")
    return _ENDS.get(group.verdict, "without result")


class News:
    """The lines about one sweep that were not shown yet."""

    def __init__(self) -> None:
        self._groups: set[tuple[str, Verdict | None]] = set()
        self._reached: dict[int, tuple[int, int]] = {}

    def groups(self, sweep: SweepRecord) -> list[str]:
        """A line for each group that has ended since the last call and did not pass.

        A group that passed gets its line when it turns out to be slow, which may be rounds later.
        """
        lines = []
        for stage in sweep.rounds:
            ended = [group for group in stage.groups if group.state is GroupState.ENDED]
            news = [group for group in ended if (group.id, group.verdict) not in self._groups]
            self._groups.update((group.id, group.verdict) for group in news)
            notable = [group for group in news if group.verdict is not Verdict.PASS]
            lines += [f"round {stage.number}: {group_line(group, sweep.metric)}" for group in notable]
        return lines

    def rounds(self, sweep: SweepRecord) -> list[str]:
        """A line for each round that is new, or of which another tenth has ended since its last line."""
        lines = []
        for stage in sweep.rounds:
            groups = len(stage.groups) + stage.waiting
            ended = sum(group.state is GroupState.ENDED for group in stage.groups)
            reached = (_STEPS * ended // groups if groups else 0, int(ended == groups))
            if self._reached.get(stage.number) != reached:
                self._reached[stage.number] = reached
                lines.append(round_line(stage))
        return lines

    def lines(self, sweep: SweepRecord) -> list[str]:
        """All that is new."""
        return [*self.groups(sweep), *self.rounds(sweep)]


class SweepProgress:
    """Shows the progress of one sweep on `out`. On a terminal, the line of the running round changes in place."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._in_place = out.isatty()
        self._news = News()
        self._rounds_over = 0

    def show(self, sweep: SweepRecord) -> None:
        """Shows what is new."""
        if self._in_place:
            self._redraw(sweep)
        else:
            self._out.writelines(f"{in_one_line(line)}\n" for line in self._news.lines(sweep))
        self._out.flush()

    def leave(self) -> None:
        """Ends the present line, so that later output begins on a line of its own."""
        if self._in_place:
            self._out.write("\n")

    def _redraw(self, sweep: SweepRecord) -> None:
        self._out.writelines(f"{_FROM_THE_START}{in_one_line(line)}\n" for line in self._news.groups(sweep))
        over = len(sweep.rounds) - (sweep.ended_at is None)
        for stage in sweep.rounds[self._rounds_over : max(over, 0)]:
            self._out.write(f"{_FROM_THE_START}{round_line(stage)}\n")
        self._rounds_over = max(over, 0)
        for stage in sweep.rounds[self._rounds_over :]:
            self._out.write(_FROM_THE_START + round_line(stage)[: _columns(self._out) - 1])


def _columns(terminal: TextIO) -> int:
    """The present width of the terminal; 80 if unknown."""
    try:
        return os.get_terminal_size(terminal.fileno()).columns or _USUAL_COLUMNS
    except OSError:
        return _USUAL_COLUMNS
