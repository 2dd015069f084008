"""What one group showed, by itself: the evidence that `localize` compares."""

from dataclasses import dataclass
from enum import StrEnum

from muster.model import Severity, Verdict
from muster_coordinator.group import Group
from muster_coordinator.member import CRASHED, UNREACHABLE, may_be_echo


class Outcome(StrEnum):
    """What a trial showed by itself, before it is compared with the others."""

    GOOD = "GOOD"
    BAD = "BAD"
    VOID = "VOID"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What one group showed.

    `crashed` are the members whose own ranks were ended, `hard` says that there were any or that a verdict was FAIL,
    and `detail` says for people why it was bad. Where the rails were tried apart, `rails` holds for each what the group
    would reach if all were like it.
    """

    group: str
    members: tuple[str, ...]
    outcome: Outcome
    objective: float | None = None
    rails: tuple[float, ...] = ()
    crashed: frozenset[str] = frozenset()
    hard: bool = False
    detail: str = ""

    def others(self, node: str) -> tuple[str, ...]:
        return tuple(member for member in self.members if member != node)


def trial_of(group: Group) -> Trial:
    """What a group that has ended showed."""
    crashed = frozenset(blame.node for blame in group.blamed if blame.reason in CRASHED)
    members = group.facts.values()
    failures = [
        f"{member.node}: {finding.summary}"
        for member in members
        for finding in member.findings
        if finding.severity is Severity.ERROR
    ]
    blamed = [f"{blame.node}: {blame.detail or blame.reason}" for blame in group.blamed]
    return Trial(
        group=group.id,
        members=group.members,
        outcome=_outcome(group),
        objective=group.objective,
        crashed=crashed,
        hard=bool(crashed) or any(member.verdict is Verdict.FAIL for member in members),
        detail="; ".join(blamed or failures),
    )


def _outcome(group: Group) -> Outcome:
    """GOOD and BAD by what every member says; without its word only by what nobody else can have brought about."""
    said = {member.verdict for member in group.facts.values()}
    if Verdict.FAIL in said:
        return Outcome.BAD
    if said <= {Verdict.PASS, Verdict.WARN}:
        return Outcome.GOOD
    reasons = {blame.reason for blame in group.blamed}
    if len(group.members) == 1 or not reasons:
        return Outcome.VOID
    if reasons <= CRASHED | {UNREACHABLE} or (None not in said and all(map(may_be_echo, reasons))):
        return Outcome.BAD
    return Outcome.VOID
