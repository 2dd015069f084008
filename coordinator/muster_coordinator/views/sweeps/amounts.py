"""The metric that the groups of a sweep are compared by, and the typical amounts of healthy groups."""

from dataclasses import dataclass

from muster.model import Metric
from muster_coordinator.localize.evidence.slow_runs import Thresholds
from muster_coordinator.localize.wording.sentences import amount
from muster_coordinator.model.sweep_records import GroupRecord, SweepRecord
from muster_coordinator.sweeps.group_run import group_run_of


@dataclass(frozen=True, slots=True)
class Amounts:
    """The metric, and the typical amounts of groups of several nodes and of single nodes; None if unknown."""

    metric: str | None
    together: float | None
    alone: float | None

    def words(self, value: float | None) -> str:
        """A value with its unit."""
        return amount(value, self.metric)

    def typical(self, group: GroupRecord) -> float | None:
        """The typical amount of groups like this one."""
        return self.alone if len(group.members) == 1 else self.together


def amounts_of(record: SweepRecord) -> Amounts:
    """The amounts of a complete record: typical values have the same runs and bounds as in the sweep's judgement.

    Prevents: 40 nodes, of which two may lie, and two of three controls have run alone. The sweep compares no node alone
    yet; a bound for a smaller fleet would show a typical amount that the sweep has never used.
    """
    groups = (group for stage in record.rounds for group in stage.groups if group.is_evidence)
    thresholds = Thresholds(len(record.nodes), tuple(map(group_run_of, groups)))
    found = (thresholds.together, thresholds.alone)
    return Amounts(record.metric, *(None if threshold is None else threshold.typical for threshold in found))


def numbers(metric: Metric) -> list[float]:
    """The known numbers of a metric: one, or one for each device."""
    return [number for number in (metric if isinstance(metric, list) else [metric]) if number is not None]
