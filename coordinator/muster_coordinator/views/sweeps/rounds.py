"""The rounds of a sweep with a line for every group."""

from muster.units import with_unit
from muster_coordinator.model.sweep_records import Ending, GroupRecord, SweepRecord
from muster_coordinator.views.sweeps.naming import blame_lines, indented, names


def sweep_rounds(sweep: SweepRecord) -> str:
    """Every group of every round, and the changes of the diagnosis by each round."""
    lines = []
    for stage in sweep.rounds:
        lines += [
            "",
            f"round {stage.number}",
            *indented(group_line(group, sweep.metric) for group in stage.groups),
            *indented(stage.learned),
        ]
    return "\n".join(lines)


def group_line(group: GroupRecord, metric: str | None) -> str:
    """One line: the members in rank order, the outcome, and the value of `metric`, which they are compared by."""
    outcome = group.verdict or group.state
    ending = "" if group.ending in (None, Ending.FINISHED) else f", {group.ending.lower().replace('_', ' ')}"
    objective = "" if group.objective is None else " " + with_unit(f"{group.objective:.4g}", metric)
    blamed = "".join(f"; {line}" for line in blame_lines(group.blamed))
    again = "; formed again" if group.formed_again else ""
    return f"{names(group.members, ' + ')}: {outcome}{ending}{objective}{blamed}{again}"
