"""Which runs of a report are new.

A node numbers its runs per stream and sends each until it hears that it is stored, so the same runs may come again,
late or out of order. What has been taken is one number per stream: everything up to it. A report is taken only when
nothing is missing between that number and its first run; `after` tells, because it names the run before that the node
still keeps. Runs up to the number are duplicates. Otherwise there is a gap, and the node is to send again.
"""

from dataclasses import dataclass

from muster.model import Run
from muster.wire.messages import Report


@dataclass(frozen=True, slots=True)
class Intake:
    """What came of a report: the runs to store, and up to where the stream is taken now."""

    fresh: tuple[Run, ...]
    through: int
    duplicates: int = 0
    gap: bool = False


def take(report: Report, through: int) -> Intake:
    """The part of `report` that is new when its stream has been taken up to and including `through`."""
    if report.after > through:
        return Intake((), through, gap=True)
    if report.runs[0].seq > through:
        return Intake(report.runs, report.runs[-1].seq)
    fresh = tuple(run for run in report.runs if run.seq > through)
    return Intake(fresh, max(through, report.runs[-1].seq), duplicates=len(report.runs) - len(fresh))
