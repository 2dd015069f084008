"""Which findings require draining: the policy as data, and what it requires.

A policy is a list of rows. For every finding against a node, the first row that matches decides. A finding that no row
matches does not drain the node. A row matches by the code of the finding, by the check that found it, by conditions on
its evidence, by its severity and by the kind of its proof:

- findings of the node's own checks and convictions by sweeps, with proof ONCE or TWICE
- convictions alone, with proof LOCALISED
- comparisons with the fleet and with the node's past alone, with proof COMPARED

A row that matches requires nothing before the finding has stood for `after_s` and was found `repeats` times within
`within_s`. From then on it requires draining. The requirement is proven when the finding has the proof that the row
wants and was found within the last `fresh_s`; until then the check must find it once more. Example: `heat` wants TWICE
and `after_s = 300`. A GPU is too hot at 10:00 and at 10:02; draining is required, and proven, from 10:05 on.

UNKNOWN verdicts and findings of a group without a conviction never require draining: no row matches the former, and
the latter do not stand against a node.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from muster.model import Action, Severity
from muster.transition import Cause
from muster_coordinator.model.findings import FindingKey, Proof, StandingFinding, cause_label
from muster_coordinator.model.policy_row import MATCHED_BY_PROOF, MOST_REPEATS, Row
from muster_coordinator.model.quarantine import FindingTimes, QuarantineRecord, Requirement, UpcomingRequirement
from muster_coordinator.model.scheduler_marks import leaving

LOST = "node.lost"
"""The finding that stands against a silent node; the coordinator finds it itself, so its check is `node`."""

MOST_CAUSES = 8
"""Causes kept for one node; nobody reads a text that names more."""

MOST_TIMES = 512
"""Findings of one node whose times are kept. A node with ever new findings loses the oldest."""

LONGEST_DEPARTURE_S = 4 * 3600.0
"""How long an agent may announce that its node leaves. An agent that lies must not escape from the policy for ever."""

_PROVEN_BY = {**MATCHED_BY_PROOF, Proof.TWICE: frozenset({Proof.TWICE, Proof.LOCALISED})}

_ACTIONS = tuple(Action)

_NEVER = float("inf")

Times = Mapping[FindingKey, Sequence[float]]
"""By finding, when runs found it, the earliest first; the last MOST_REPEATS of them are enough."""


class PolicyResult(NamedTuple):
    """What the policy requires of a node now, what it will require in time, and when time alone changes either.

    `causes` are the findings behind the requirement, the worst first.
    """

    requirement: Requirement | None = None
    upcoming: UpcomingRequirement | None = None
    next_change: float | None = None
    causes: tuple[Cause, ...] = ()


@dataclass(frozen=True, slots=True)
class _Match:
    """What a row makes of a finding: it requires draining between two times, and is proven until a third."""

    row: Row
    finding: StandingFinding
    begins_at: float
    ends_at: float
    lapses_at: float

    def counts(self, now: float) -> bool:
        return self.begins_at <= now < self.ends_at

    def is_proven(self, now: float) -> bool:
        return self.finding.proof in _PROVEN_BY[self.row.proof] and now < self.lapses_at

    def changes_at(self, now: float) -> float | None:
        """When time alone changes what it requires."""
        if self.ends_at <= max(now, self.begins_at):
            return None
        if now < self.begins_at:
            return self.begins_at
        change = min(self.ends_at, self.lapses_at) if self.is_proven(now) else self.ends_at
        return change if change < _NEVER else None

    @property
    def action(self) -> Action:
        return self.finding.action if self.row.action is None else self.row.action

    @property
    def rank(self) -> tuple[int, str, str, str, int]:
        """Sorts the one that weighs most first."""
        device = -1 if self.finding.device is None else self.finding.device
        return -self.row.urgency, self.finding.cause, self.row.name, self.finding.check, device


@dataclass(frozen=True, slots=True)
class Policy:
    """The rows in the order in which they are matched: the operator's first, then those that come with muster."""

    rows: tuple[Row, ...]

    def row_of(self, finding: StandingFinding) -> Row | None:
        """The row that decides about a finding; None when no row does, and nothing happens."""
        return next((row for row in self.rows if row.matches(finding)), None)

    def not_draining(self, findings: Iterable[StandingFinding]) -> tuple[str, ...]:
        """Which errors among these never drain a node, whatever their proof, and why; the same only once."""
        errors = ((finding, self.row_of(finding)) for finding in findings if finding.severity is Severity.ERROR)
        spared = ((finding, row) for finding, row in errors if row is None or not row.drains)
        return tuple(dict.fromkeys(_spared_text(finding, row) for finding, row in spared))

    def ignored(self, findings: Iterable[StandingFinding], ignored_before: float) -> tuple[str, ...]:
        """Findings that a person released although they still stand and a row drains for them; the same only once.

        A finding that is found again counts again.
        """
        rows = ((finding, self.row_of(finding)) for finding in findings if finding.seen <= ignored_before)
        draining = ((finding, row) for finding, row in rows if row is not None and row.drains)
        return tuple(dict.fromkeys(_drains_again(finding, row) for finding, row in draining))

    def evaluate(self, findings: Iterable[StandingFinding], times: Times, now: float) -> PolicyResult:
        """What the findings against one node require; no requirement when it may stay in service.

        The row with the highest urgency counts, and of equal ones the first cause. When one finding proves its row, the
        requirement is proven, whatever else was found. The action is the most that the rows that count suggest.
        """
        matches = list(self._matches(findings, times))
        changes = (change for match in matches if (change := match.changes_at(now)) is not None)
        next_change = min(changes, default=None)
        counting = sorted((match for match in matches if match.counts(now)), key=lambda match: match.rank)
        if counting:
            worst_first = sorted(counting, key=lambda match: not match.is_proven(now))
            causes = _causes(match.finding for match in worst_first)
            return PolicyResult(_requirement(worst_first, now), None, next_change, causes)
        return PolicyResult(None, _upcoming(matches, now), next_change)

    def _matches(self, findings: Iterable[StandingFinding], times: Times) -> Iterator[_Match]:
        """What the rows that drain make of the findings, now or in time."""
        for finding in findings:
            row = self.row_of(finding)
            if row is not None and row.drains:
                yield _match(row, finding, times.get(finding.key, ()))


def evaluate_policy(policy: Policy, record: QuarantineRecord, now: float) -> PolicyResult:
    """What the policy requires of a node; nothing if the node leaves as planned, or has left."""
    if record.evidence.has_left or leaving(record.actors.observed) is not None:
        return PolicyResult()
    believed_until = record.evidence.departure_at + LONGEST_DEPARTURE_S
    if record.evidence.departure is not None and now < believed_until:
        return PolicyResult(next_change=believed_until)
    findings = standing_findings(record, now)
    if not findings:
        return PolicyResult()
    ignored_before = record.decision.ignored_before
    times = {seen.key: tuple(at for at in seen.times if at > ignored_before) for seen in record.evidence.seen}
    counting = [
        _since_released(finding, ignored_before, times.get(finding.key, ()))
        for finding in findings
        if finding.seen > ignored_before
    ]
    return policy.evaluate(counting, times, now)


def _since_released(finding: StandingFinding, ignored_before: float, times: Sequence[float]) -> StandingFinding:
    """The finding without the runs from before a person released the node untested."""
    if finding.since > ignored_before:
        return finding
    is_once = finding.proof is Proof.TWICE and len(times) < 2
    return finding.model_copy(update={"since": ignored_before, "proof": Proof.ONCE if is_once else finding.proof})


def standing_findings(record: QuarantineRecord, now: float) -> tuple[StandingFinding, ...]:
    """The findings that stand against a node, its silence included.

    A silence that a person released is over only when the node is heard.
    """
    evidence = record.evidence
    if evidence.lost_at is None or evidence.lost_at <= record.decision.ignored_before:
        return evidence.findings
    lost = StandingFinding(
        check="node",
        code=LOST,
        device=None,
        severity=Severity.ERROR,
        action=Action.NONE,
        summary="its heartbeat has stopped",
        since=evidence.lost_at,
        seen=now,
        run="heartbeat",
        proof=Proof.ONCE,
    )
    return (*evidence.findings, lost)


def newly_spared(policy: Policy, before: QuarantineRecord, after: QuarantineRecord, now: float) -> tuple[str, ...]:
    """Which errors against a node are new and never drain it, and why."""
    known = {finding.key for finding in standing_findings(before, now)}
    return policy.not_draining(finding for finding in standing_findings(after, now) if finding.key not in known)


def times_after(before: Iterable[FindingTimes], findings: Iterable[StandingFinding]) -> tuple[FindingTimes, ...]:
    """The times with those of these findings. The times of a finding that no longer stands are kept."""
    known = {seen.key: seen for seen in before}
    for finding in findings:
        old = known.get(finding.key)
        times = tuple(sorted({finding.seen, *(old.times if old is not None else ())}))[-MOST_REPEATS:]
        check, code, device, number = finding.key
        known[finding.key] = FindingTimes(check=check, code=code, device=device, number=number, times=times)
    if len(known) <= MOST_TIMES:
        return tuple(known.values())
    return tuple(sorted(known.values(), key=lambda seen: seen.times[-1])[-MOST_TIMES:])


def why_spared(row: Row | None) -> str:
    """Why a finding that this row matches does not drain the node; None: no row matches."""
    return "no policy row" if row is None else f"policy row {row.name} does not drain"


def _spared_text(finding: StandingFinding, row: Row | None) -> str:
    place = "no policy row" if row is None else f"policy row {row.name}"
    if finding.code == LOST:
        return f"Agent silent; policy does not drain for this ({place})"
    return f"{cause_label(finding.cause)} does not require draining ({place})"


def _drains_again(finding: StandingFinding, row: Row) -> str:
    again = f"when {finding.check} reports it again, muster drains the node again (policy row {row.name})"
    return f"{finding.as_cause.full} still stands: {again}"


def _causes(findings: Iterable[StandingFinding]) -> tuple[Cause, ...]:
    """The first findings as causes: one for each code, number and device, whichever checks found it."""
    found: dict[tuple[str, int | None], StandingFinding] = {}
    for finding in findings:
        found.setdefault((finding.cause, finding.device), finding)
    return tuple(finding.as_cause for finding in [*found.values()][:MOST_CAUSES])


def _requirement(counting: Sequence[_Match], now: float) -> Requirement:
    """The requirement of the rows that count. `counting` has the proven ones first, then the most urgent."""
    proven = [match for match in counting if match.is_proven(now)]
    weighing = proven or counting
    first = weighing[0]
    return Requirement(
        row=first.row.name,
        codes=tuple(dict.fromkeys(match.finding.code for match in counting)),
        cause=first.finding.cause,
        action=max((match.action for match in weighing), key=_ACTIONS.index),
        urgency=first.row.urgency,
        reason=first.row.reason,
        unproven=() if proven else tuple(sorted({match.finding.check for match in counting})),
    )


def _upcoming(matches: Iterable[_Match], now: float) -> UpcomingRequirement | None:
    """What will be required first if time passes and nothing else happens; None if nothing will be."""
    coming = (match for match in matches if now < match.begins_at < match.ends_at)
    first = min(coming, key=lambda match: (match.begins_at, match.rank), default=None)
    if first is None:
        return None
    return UpcomingRequirement(row=first.row.name, code=first.finding.code, at=first.begins_at)


def _match(row: Row, finding: StandingFinding, found_at: Sequence[float]) -> _Match:
    """What a row makes of a finding; it ends as it begins if runs did not find it as often as the row wants."""
    begins_at, ends_at = finding.since + row.after_s, _NEVER
    if row.within_s is not None:
        ends_at = found_at[-row.repeats] + row.within_s if len(found_at) >= row.repeats else begins_at
    return _Match(row, finding, begins_at, ends_at, lapses_at=finding.seen + row.fresh_s)
