"""The cost of a sweep in node-seconds: what it has spent, and an estimate for further groups.

The idea: the next group takes as long as the median of the last RECENT groups that finished. Before any group has
finished, the estimate of the check counts.

Example: groups took 30, 31 and 90 s, so the next pair is expected to take 31 s and to cost 62 node-seconds. With 150
node-seconds left, the sweep may form two more pairs.

Counting a group takes constant time, an estimate O(RECENT log RECENT).
"""

import statistics
from collections import deque
from collections.abc import Iterable

from muster_coordinator.model.sweep_records import Ending, GroupRecord
from muster_coordinator.sweeps.formation import Formation, GroupTask
from muster_coordinator.sweeps.group import FORMING_S, PREPARING_S, RUN_GRACE_S

RECENT = 100
"""Finished groups from which the duration of the next group is estimated."""


class SweepCost:
    """Node-seconds of a sweep that runs `task`."""

    def __init__(self, task: GroupTask) -> None:
        self.spent_node_s = 0.0
        self._task = task
        self._durations: deque[float] = deque(maxlen=RECENT)

    def add(self, record: GroupRecord) -> None:
        """Adds the cost of a group that has ended.

        The duration is bounded by what a group can take. Prevents: the clock is set forward by an hour during a run, or
        the coordinator is down for an hour; the group would cost an hour of all its nodes.
        """
        assert record.ended_at is not None
        duration_s = min(max(record.ended_at - record.started_at, 0.0), self._longest_s)
        self.spent_node_s += duration_s * len(record.members)
        if record.ending is Ending.FINISHED:
            self._durations.append(duration_s)

    @property
    def _longest_s(self) -> float:
        return FORMING_S + PREPARING_S + self._task.timeout_s + RUN_GRACE_S

    @property
    def expected_s(self) -> float:
        """Expected duration of a group, in seconds."""
        return statistics.median(self._durations) if self._durations else self._task.expected_s

    def affordable(self, formations: Iterable[Formation], limit_node_s: float | None) -> list[Formation]:
        """The first groups, as many as the limit in node-seconds allows; all without a limit."""
        if limit_node_s is None:
            return list(formations)
        left, found = limit_node_s - self.spent_node_s, []
        for formation in formations:
            left -= self.expected_s * len(formation.members)
            if left < 0:
                break
            found.append(formation)
        return found
