"""One group in words, from the view of one of its nodes: members, reason, measurements, outcome."""

from collections.abc import Iterator

from muster.terminal import in_one_line
from muster.units import with_unit
from muster_coordinator.model.sweep_records import Ending, GroupRecord, MemberRecord
from muster_coordinator.views.sweeps.amounts import Amounts, numbers
from muster_coordinator.views.sweeps.explained import ExplainedGroup
from muster_coordinator.views.sweeps.naming import blame_lines, names

_ENDINGS = {
    Ending.NOT_FORMED: "the group could not be formed",
    Ending.TIMED_OUT: "the group did not end in time",
    Ending.ABORTED: "the group was aborted before all members had reported",
    Ending.INTERRUPTED: "the coordinator stopped before the group had ended",
}


def explained_group(node: str, group: GroupRecord, amounts: Amounts) -> ExplainedGroup:
    """The group in words for its member `node`."""
    place = next((place for place in group.places if place.node == node), MemberRecord(node=node))
    return ExplainedGroup(
        id=group.id,
        others=tuple(member for member in group.members if member != node),
        first_rank=place.first_rank,
        verdict=group.verdict,
        objective=group.objective,
        typical=amounts.typical(group),
        told=(
            f"{_company(group, place)}{_ranks(group, place)}",
            *(f"formed because: {reason}" for reason in group.reasons),
            *_outcome(group, amounts),
            *_own(place),
        ),
    )


def _company(group: GroupRecord, place: MemberRecord) -> str:
    others = [member for member in group.members if member != place.node]
    rails = ", on one rail after the other" if group.by_rail else ""
    return (f"with {names(others)}" if others else "alone") + rails


def _ranks(group: GroupRecord, place: MemberRecord) -> str:
    """The ranks of the node; empty if it got none."""
    if place.first_rank is None or not place.ranks:
        return ""
    last, world_size = place.first_rank + place.ranks - 1, sum(member.ranks or 0 for member in group.places)
    own = f"rank {last}" if place.ranks == 1 else f"ranks {place.first_rank} to {last}"
    return f"; {place.node} had {own} of {world_size}"


def _outcome(group: GroupRecord, amounts: Amounts) -> Iterator[str]:
    if group.ending is None:
        yield f"it is {group.state} now"
        return
    if group.ending in _ENDINGS:
        yield _ENDINGS[group.ending] + (", and was formed again" if group.formed_again else "")
    yield from blame_lines(group.blamed)
    if group.objective is not None and not group.slow:  # the reason for slow contains the amounts, too
        yield f"reached {amounts.words(group.objective)}, {_compared(group, amounts)}"
    yield f"verdict {group.verdict}" + (f": {group.slow}" if group.slow else "")


def _compared(group: GroupRecord, amounts: Amounts) -> str:
    typical = amounts.typical(group)
    if typical is None:
        return "and there are too few runs to compare it with"
    return f"typical for groups {amounts.kind(group)} here is {amounts.words(typical)}"


def _own(place: MemberRecord) -> Iterator[str]:
    """The measurements and findings of the node's ranks."""
    if place.verdict is not None:
        yield f"{place.node} reported {place.verdict}"
    measured = dict.fromkeys(name for rank in place.measured for name in rank)
    if ranges := [f"{name} {span}" for name in measured if (span := _span(place, name))]:
        yield f"{place.node} measured {', '.join(ranges)}"
    findings: dict[str, int] = {}
    for finding in place.findings:
        words = f"{place.node} found {finding.code}: {in_one_line(finding.summary)}"
        findings[words] = findings.get(words, 0) + 1
    yield from (words if count == 1 else f"{words} ({count} times)" for words, count in findings.items())


def _span(place: MemberRecord, name: str) -> str:
    """The range that the node's ranks measured; empty if no number is known."""
    known = [number for rank in place.measured for number in numbers(rank.get(name))]
    if not known:
        return ""
    least, most = f"{min(known):.3g}", f"{max(known):.3g}"
    return with_unit(least if least == most else f"{least} to {most}", name)
