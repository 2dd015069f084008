"""The common results of pairs of nodes: the cells of the matrix."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from muster_coordinator.model.probes import RunOutcome
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.views.sweeps.runs import RunInRound, runs_of


@dataclass(frozen=True, slots=True)
class Pair:
    """Two nodes that ran in a group of two: the median of their results, and the numbers of all and of failed runs."""

    nodes: tuple[str, str]
    reached: float | None
    runs: int
    failed: int


def pairs(record: SweepRecord) -> list[Pair]:
    """Every pair of the complete record with a result; a run that was neither good nor bad is none."""
    found: dict[tuple[str, str], list[RunInRound]] = {}
    places = {node: place for place, node in enumerate(record.nodes)}
    for run in runs_of(record):
        if len(run.group.members) == 2 and run.outcome is not RunOutcome.VOID:
            found.setdefault(_in_order(run, places), []).append(run)
    return [_pair(nodes, runs) for nodes, runs in found.items()]


def _in_order(run: RunInRound, places: Mapping[str, int]) -> tuple[str, str]:
    one, other = sorted(run.group.members, key=places.__getitem__)
    return one, other


def _pair(nodes: tuple[str, str], runs: list[RunInRound]) -> Pair:
    reached = [run.group.objective for run in runs if run.group.objective is not None]
    failed = sum(run.outcome is RunOutcome.BAD for run in runs)
    return Pair(nodes, statistics.median(reached) if reached else None, len(runs), failed)
