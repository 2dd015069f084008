"""The runs of a sweep as what they were to its judgement: good, bad, or nothing to go by."""

from collections.abc import Iterator
from typing import NamedTuple

from muster.model import Verdict
from muster_coordinator.localize.evidence.history import suspected_members
from muster_coordinator.model.probes import RunOutcome
from muster_coordinator.model.sweep_records import GroupRecord, SweepRecord
from muster_coordinator.sweeps.group_run import group_run_of


class RunInRound(NamedTuple):
    """A group that has run, or was to run, in a round."""

    round: int
    group: GroupRecord

    @property
    def outcome(self) -> RunOutcome:
        """What it showed beside the others; nothing when it was interrupted or formed again."""
        if not self.group.is_evidence:
            return RunOutcome.VOID
        return RunOutcome.BAD if self.group.verdict is Verdict.FAIL else group_run_of(self.group).outcome

    @property
    def passed(self) -> bool:
        """Whether it shows that its members are well. One rank that meets nobody measures 0, which shows nothing."""
        return self.outcome is RunOutcome.GOOD and self.group.objective != 0

    @property
    def charged(self) -> frozenset[str]:
        """The members that it counts against: none unless it was bad, and of a large group only those that crashed."""
        return frozenset(suspected_members(group_run_of(self.group)) if self.outcome is RunOutcome.BAD else ())

    def others(self, node: str) -> tuple[str, ...]:
        """The members besides `node`."""
        return tuple(member for member in self.group.members if member != node)


def runs_of(record: SweepRecord) -> Iterator[RunInRound]:
    """Every group of the complete record, in order."""
    return (RunInRound(stage.number, group) for stage in record.rounds for group in stage.groups)
