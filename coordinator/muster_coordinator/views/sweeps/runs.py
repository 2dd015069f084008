"""The runs of a sweep as its diagnosis counts them: good, bad, or void."""

from collections.abc import Iterator
from typing import NamedTuple

from muster.model import Verdict
from muster_coordinator.localize.evidence.history import suspected_members
from muster_coordinator.model.probes import RunOutcome
from muster_coordinator.model.sweep_records import GroupRecord, SweepRecord
from muster_coordinator.sweeps.group_run import group_run_of


class RunInRound(NamedTuple):
    """A group and the number of its round."""

    round: int
    group: GroupRecord

    @property
    def outcome(self) -> RunOutcome:
        """The outcome of the group; VOID if it was interrupted or formed again."""
        if not self.group.is_evidence:
            return RunOutcome.VOID
        return RunOutcome.BAD if self.group.verdict is Verdict.FAIL else group_run_of(self.group).outcome

    @property
    def passed(self) -> bool:
        """Whether it shows that its members are healthy.

        A single rank without a partner measures 0 and shows nothing.
        """
        return self.outcome is RunOutcome.GOOD and self.group.objective != 0

    @property
    def charged(self) -> frozenset[str]:
        """The members that a bad run counts against; of a large group, only those that crashed."""
        return frozenset(suspected_members(group_run_of(self.group)) if self.outcome is RunOutcome.BAD else ())

    def others(self, node: str) -> tuple[str, ...]:
        """The members besides `node`."""
        return tuple(member for member in self.group.members if member != node)


def runs_of(record: SweepRecord) -> Iterator[RunInRound]:
    """Every group of the complete record, in order."""
    return (RunInRound(stage.number, group) for stage in record.rounds for group in stage.groups)
