"""The result of an ended group, as evidence for localisation."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence

from muster.model import Metric, Severity, Verdict
from muster_coordinator.model.probes import GroupRun, RunOutcome
from muster_coordinator.model.sweep_records import GroupRecord, MemberRecord
from muster_coordinator.sweeps.member import CRASHED, UNREACHABLE, is_figure, may_be_echo

SENT, LATEST, WORK = "sent_gbps", "arrived_last", "compute_s"
"""Metrics with which any group check can say more about single members: GB/s that the node sent while no other node
sent, the share of rounds in which the rank came last, and the seconds of its own work before a round.
"""


NOT_JUDGED = "run.not_judged"
"""The finding with which an agent names metrics that the check judges, but that have no reference on the node."""


def group_run_of(
    group: GroupRecord,
    rail_metric: str | None = None,
    judged_metric: str | None = None,
    *,
    beside: int = 0,
    number: int = 0,
) -> GroupRun:
    """The result of an ended group; `rail_metric` names the metric with a number for each rail.

    `judged_metric` is the objective if the check judges it. `beside` other groups of its sweep, of several
    nodes each, ran at the same time, in the round with this `number`.
    """
    crashed = _crashed(group)
    failures = [
        f"{place.node}: {finding.summary}"
        for place in group.places
        for finding in place.findings
        if finding.severity is Severity.ERROR
    ]
    blamed = [f"{blame.node}: {blame.detail or blame.reason}" for blame in group.blamed]
    return GroupRun(
        group=group.id,
        members=group.members,
        outcome=_outcome(group),
        objective=group.objective,
        rails=_rails(group, rail_metric) if group.by_rail and rail_metric is not None else (),
        crashed=crashed,
        hard=any(blame.reason in CRASHED for blame in group.blamed)
        or any(place.verdict is Verdict.FAIL for place in group.places),
        detail="; ".join(blamed or failures),
        on_one_host=_share_a_host(group),
        is_judged=judged_metric is not None and all(_has_reference(place, judged_metric) for place in group.places),
        beside=beside,
        round=number,
        sent=_of_nodes(group, SENT, min),
        latest=_of_nodes(group, LATEST, max),
        work_s=_of_nodes(group, WORK, max),
    )


def _crashed(group: GroupRecord) -> frozenset[str]:
    """The members whose own ranks crashed; none if those of all members of a group did.

    If one rank hangs, the library aborts every rank that waits for it, so all processes end in the same way, whatever
    has happened: a node, a link or a switch lets nothing through, or one rank crashed first. Source: PyTorch tears a
    process down when an operation times out, unless TORCH_NCCL_ASYNC_ERROR_HANDLING is 0.
    """
    crashed = frozenset(blame.node for blame in group.blamed if blame.reason in CRASHED)
    return frozenset() if len(group.members) > 1 and crashed.issuperset(group.members) else crashed


def _outcome(group: GroupRecord) -> RunOutcome:
    """GOOD or BAD if every member reported; otherwise BAD only if no other node can have caused it, else VOID."""
    said = {place.verdict for place in group.places}
    if Verdict.FAIL in said:
        return RunOutcome.BAD
    if said <= {Verdict.PASS, Verdict.WARN}:
        return RunOutcome.GOOD
    reasons = {blame.reason for blame in group.blamed}
    if len(group.members) == 1:
        return RunOutcome.BAD if reasons and reasons <= CRASHED else RunOutcome.VOID
    if not reasons:
        return RunOutcome.VOID
    if reasons <= CRASHED | {UNREACHABLE} or (None not in said and all(map(may_be_echo, reasons))):
        return RunOutcome.BAD
    return RunOutcome.VOID


def _share_a_host(group: GroupRecord) -> bool:
    """Whether members listen at one address."""
    addresses = [place.address for place in group.places if place.address is not None]
    return len(set(addresses)) < len(addresses)


def _has_reference(place: MemberRecord, metric: str) -> bool:
    """Whether a member has a reference for this metric, which the check judges."""
    without = (finding.evidence.get("metrics") for finding in place.findings if finding.code == NOT_JUDGED)
    return not any(isinstance(names, list) and metric in names for names in without)


def _rails(group: GroupRecord, metric: str) -> tuple[float, ...]:
    """The value of every rail: the lowest that any rank reports for it.

    None if ranks report different numbers of rails; ranks that lack a rail do not count. All honest ranks report the
    same. A liar may add a rail or change a value to make its partner look bad.
    """
    measured = (rank.get(metric) for place in group.places for rank in place.measured)
    reported = [values for values in map(_complete, measured) if values]
    return tuple(map(min, zip(*reported, strict=True))) if len(set(map(len, reported))) == 1 else ()


def _complete(values: Metric | None) -> list[float]:
    """The values of all rails; empty when one is missing or there are none."""
    if not isinstance(values, list):
        return []
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else []


def _of_nodes(group: GroupRecord, metric: str, worst: Callable[[Iterable[float]], float]) -> dict[str, float]:
    """The worst value that the ranks of each node reported."""
    values_by_node = {place.node: [rank.get(metric) for rank in place.measured] for place in group.places}
    numbers = {node: [value for value in values if is_figure(value)] for node, values in values_by_node.items()}
    return {node: worst(values) for node, values in numbers.items() if values}


def beside_of(groups: Sequence[GroupRecord]) -> list[int]:
    """For each group that has ended, how many others of several nodes ran at the same time. O(n log n) for n groups."""
    together = [group for group in groups if len(group.members) > 1]
    began = sorted(group.started_at for group in together)
    ended = sorted(group.ended_at or group.started_at for group in together)
    return [
        max(
            bisect_left(began, group.ended_at or group.started_at)
            - bisect_right(ended, group.started_at)
            - (len(group.members) > 1),
            0,
        )
        for group in groups
    ]
