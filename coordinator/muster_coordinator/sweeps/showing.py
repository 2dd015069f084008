"""What a group that has ended showed, as evidence for `localize`."""

from muster.model import Severity, Verdict
from muster_coordinator.localize.trial import Outcome, Trial
from muster_coordinator.sweeps.group import Group
from muster_coordinator.sweeps.member import CRASHED, UNREACHABLE, may_be_echo


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
