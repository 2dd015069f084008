"""Decides which runs are stored whole, and which are quiet.

The idea: most runs find nothing, and differ from the run before only in numbers. Of such a quiet run, only the numbers
are stored, beside the id of a whole run that it is like, its base. All decisions see every run in full.

A run is quiet if all of these are true:

- It was due by schedule, alone, and its verdict is PASS or SKIPPED.
- It did not move the standing of its check. So whole runs alone, added in their order, lead to the same standings.
- Its check is one that the node announced and that is not compared with other nodes: comparisons are restored from
  whole runs.
- It is like one of the last MOST_BASES whole runs of its check with the same verdict (see `model.run_shape`), in the
  same stream.

A whole run that could have been quiet becomes a base. A whole run of another kind or verdict, such as a FAIL, is a new
beginning: no run is like one from before it.

Example: PASS, PASS, FAIL, PASS, PASS, PASS. The first is whole, the second quiet. The third is whole, and so are the
next two, because each moves the standing of the check. The last one is quiet.

A run costs time in proportion to its numbers. Memory is some hundred bytes for each base.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from muster.model import Run
from muster.wire.scheduled_runs import scheduled_id, stream_key
from muster_coordinator.model.quiet_runs import QuietRun, RunBase
from muster_coordinator.model.run_shape import RunShape, facts_beside, metric_numbers

MOST_BASES = 4
"""The whole runs of a check that others may be like. Some metrics are there only under load, such as clocks."""

_PLACES = 6
"""Decimals of a quiet run's duration: a microsecond. All others would be noise, and take as much as a measurement."""


@dataclass(frozen=True, slots=True)
class SortedRun:
    """What is stored of a run: its numbers if it is `quiet`, otherwise all of it. It may be a new `base`."""

    quiet: QuietRun | None = None
    base: RunBase | None = None
    outdated: tuple[str, ...] = ()


class QuietRuns:
    """The whole runs that others may be like, by node and check; the latest last."""

    def __init__(self) -> None:
        self._bases: dict[str, dict[str, tuple[RunBase, ...]]] = {}

    def restore(self, stored: Iterable[RunBase]) -> None:
        """Restores the stored bases."""
        for base in stored:
            of_node = self._bases.setdefault(base.node, {})
            of_node[base.check] = (*of_node.get(base.check, ()), base)

    def forget(self, node: str) -> None:
        """Forgets a node that has left."""
        self._bases.pop(node, None)

    def sort(self, run: Run, shape: RunShape | None, stream: str, *, moved: bool, compared: bool) -> SortedRun:
        """What is stored of the run. It `moved` the standing of its check, or is `compared` with other nodes.

        `shape` is None for a run that is not uneventful.
        """
        of_node = self._bases.setdefault(run.node, {})
        bases = of_node.get(run.check, ())
        fit = [base for base in bases if base.stream == stream and base.verdict == run.verdict.value]
        if compared:
            shape = None
        if shape is not None and not moved and (quiet := _quiet(run, shape, stream, fit)) is not None:
            return SortedRun(quiet)
        if run.group is not None:  # says nothing about the node
            return SortedRun()
        kept: list[RunBase] = [] if moved or shape is None else fit[1 - MOST_BASES :]
        outdated = tuple(base.run for base in bases if base not in kept)
        if shape is None:
            of_node.pop(run.check, None)
            return SortedRun(None, None, outdated)
        base = RunBase(run.node, run.check, run.id, stream, run.verdict.value, shape)
        of_node[run.check] = (*kept, base)
        return SortedRun(None, base, outdated)


def _quiet(run: Run, shape: RunShape, stream: str, bases: list[RunBase]) -> QuietRun | None:
    for base in reversed(bases):
        if base.shape.outline == shape.outline and (facts := facts_beside(run, shape, base.shape)) is not None:
            changed = {
                "id": scheduled_id(stream_key(run.node, stream), run.seq),
                "duration_s": round(run.duration_s, _PLACES),
            }
            return QuietRun(run.model_copy(update=changed), base.run, metric_numbers(run.metrics), facts)
    return None
