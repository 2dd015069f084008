"""What the groups of a sweep are compared by, and what is typical of those that went well."""

from dataclasses import dataclass

from muster.model import Metric
from muster_coordinator.localize.evidence.thresholds import Thresholds
from muster_coordinator.localize.wording.sentences import amount
from muster_coordinator.model.sweep_records import GroupRecord, SweepRecord
from muster_coordinator.sweeps.group_run import group_run_of


@dataclass(frozen=True, slots=True)
class Amounts:
    """The metric, and what groups of several nodes and single nodes typically reach; None where nobody can tell."""

    metric: str | None
    together: float | None
    alone: float | None

    def words(self, value: float | None) -> str:
        """A value with its unit."""
        return amount(value, self.metric)

    def typical(self, group: GroupRecord) -> float | None:
        """What groups like this one typically reach."""
        return self.alone if len(group.members) == 1 else self.together


def amounts_of(record: SweepRecord) -> Amounts:
    """The amounts of a complete record, typical by the same measure as the localisation's."""
    runs = tuple(group_run_of(group) for stage in record.rounds for group in stage.groups)
    thresholds = Thresholds(0, runs)  # assumes a single liar, whatever the size of the fleet
    found = (thresholds.together, thresholds.alone)
    return Amounts(record.metric, *(None if threshold is None else threshold.typical for threshold in found))


def numbers(metric: Metric) -> list[float]:
    """The numbers of a metric, one or one for each device, as far as they are known."""
    return [number for number in (metric if isinstance(metric, list) else [metric]) if number is not None]
