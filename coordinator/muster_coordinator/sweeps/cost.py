"""What a sweep costs in node-seconds: what it has spent, and what further groups would take."""

import statistics
from collections import deque
from collections.abc import Iterable

from muster_coordinator.model.sweep_records import Ending, GroupRecord
from muster_coordinator.sweeps.formation import Formation
from muster_coordinator.sweeps.group import FORMING_S, PREPARING_S, RUN_GRACE_S, GroupTask

RECENT = 100
"""Groups from which the duration of the next ones is told."""


class SweepCost:
    """Node-seconds of a sweep that runs `task`."""

    def __init__(self, task: GroupTask) -> None:
        self.spent_node_s = 0.0
        self._task = task
        self._durations: deque[float] = deque(maxlen=RECENT)

    def add(self, record: GroupRecord) -> None:
        """Counts a group that has ended.

        The clock may have been set meanwhile, and one that was interrupted ended only when the next coordinator came.
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
        """How long a group is expected to take: as long as others did, or as the check says."""
        return statistics.median(self._durations) if self._durations else self._task.expected_s

    def affordable(self, formations: Iterable[Formation], limit_node_s: float | None) -> list[Formation]:
        """As many of the groups, the first ones first, as do not take the sweep beyond the limit."""
        if limit_node_s is None:
            return list(formations)
        left, found = limit_node_s - self.spent_node_s, []
        for formation in formations:
            left -= self.expected_s * len(formation.members)
            if left < 0:
                break
            found.append(formation)
        return found
