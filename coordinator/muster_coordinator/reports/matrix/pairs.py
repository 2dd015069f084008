"""What pairs of nodes reached together: the cells of the matrix."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass

from muster.model import Verdict
from muster_coordinator.sweep_records import GroupRecord, SweepRecord


@dataclass(frozen=True, slots=True)
class Pair:
    """Two nodes that ran in groups of their own: the median of what these reached, and how many ran and failed."""

    nodes: tuple[str, str]
    reached: float | None
    runs: int
    failed: int


def pairs(record: SweepRecord) -> list[Pair]:
    """Every pair of the complete record that has shown anything; a run that was neither good nor bad shows nothing."""
    found: dict[tuple[str, str], list[GroupRecord]] = {}
    places = {node: place for place, node in enumerate(record.nodes)}
    for group in (group for stage in record.rounds for group in stage.groups):
        if len(group.members) == 2 and group.verdict in (Verdict.PASS, Verdict.WARN, Verdict.FAIL):
            found.setdefault(_in_order(group, places), []).append(group)
    return [_pair(nodes, groups) for nodes, groups in found.items()]


def _in_order(group: GroupRecord, places: Mapping[str, int]) -> tuple[str, str]:
    one, other = sorted(group.members, key=places.__getitem__)
    return one, other


def _pair(nodes: tuple[str, str], groups: list[GroupRecord]) -> Pair:
    reached = [group.objective for group in groups if group.objective is not None]
    failed = sum(group.verdict is Verdict.FAIL for group in groups)
    return Pair(nodes, statistics.median(reached) if reached else None, len(groups), failed)
