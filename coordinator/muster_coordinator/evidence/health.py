"""The evidence about one node, and its health.

The idea: each check of a node has a standing, and each run moves it through the table below.

- The first FAIL makes the check SUSPECT, the second FAILED, unless a PASS came between them. A FAIL whose action is
  work on the hardware counts as the second even after one PASS: an intermittent fault is still a fault.
- Two PASS in a row leave SUSPECT or FAILED. One PASS makes any other standing GOOD.
- WARN makes the check DEGRADED, but never weakens a failure.
- UNKNOWN never improves a standing. A failure stays, and GOOD becomes UNSURE.
- SKIPPED changes nothing.

Example: gemm runs PASS, FAIL, PASS, FAIL. Its standing is GOOD, SUSPECT, SUSPECT_PASSED, and SUSPECT again, or FAILED
if the last FAIL asks to reset the GPU.

The health of a node is the worst standing of its checks. A node without a check is UNKNOWN, and a node is not HEALTHY
before each of its background checks has reported (`Node.examined_health`). Runs as a member of a group say nothing
about the node. The conviction by a sweep does: the node is FAILED until a sweep with the same check clears it. Findings
of baselines stand until the same comparison finds nothing: a WARNING makes the node DEGRADED, an ERROR SUSPECT.
Misconduct of the agent makes the node DEGRADED until the agent has behaved for a while.

Evidence does not age. A busy node is rarely idle enough to be measured, and a broken one does not heal by itself. Runs
and findings show how old they are. But nobody can measure a lost node again: its health shows as UNKNOWN at best.

Adding a run takes time in proportion to the standing findings of the node.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from types import MappingProxyType

from pydantic_core import to_json

from muster.model import MOST_NAMES, Action, Finding, Health, Json, Run, Severity, Verdict
from muster_coordinator.evidence.convictions import after_good_runs
from muster_coordinator.model.evidence_record import CheckStanding
from muster_coordinator.model.finding_size import first_within, size_of
from muster_coordinator.model.findings import NUMBERS, FindingKey, StandingFinding, number_in
from muster_coordinator.model.nodes import NodeFinding
from muster_coordinator.model.state_table import parse_state_table


class HealthOutcome(StrEnum):
    """What a run says about the health of its node. BROKEN is a FAIL whose action is work on the hardware."""

    PASS = "PASS"
    WARN = "WARN"
    FAIL = "FAIL"
    BROKEN = "BROKEN"
    UNKNOWN = "UNKNOWN"


_TABLE = """
                PASS            WARN      FAIL     BROKEN   UNKNOWN
UNSURE          GOOD            DEGRADED  SUSPECT  SUSPECT  UNSURE
GOOD            GOOD            DEGRADED  SUSPECT  SUSPECT  UNSURE
DEGRADED        GOOD            DEGRADED  SUSPECT  SUSPECT  DEGRADED
SUSPECT         SUSPECT_PASSED  SUSPECT   FAILED   FAILED   SUSPECT
SUSPECT_PASSED  GOOD            SUSPECT   SUSPECT  FAILED   SUSPECT
FAILED          FAILED_PASSED   FAILED    FAILED   FAILED   FAILED
FAILED_PASSED   GOOD            FAILED    FAILED   FAILED   FAILED
"""


MOVES = parse_state_table(_TABLE, CheckStanding, HealthOutcome)

HEALTH: dict[CheckStanding, Health] = {
    CheckStanding.UNSURE: Health.UNKNOWN,
    CheckStanding.GOOD: Health.HEALTHY,
    CheckStanding.DEGRADED: Health.DEGRADED,
    CheckStanding.SUSPECT: Health.SUSPECT,
    CheckStanding.SUSPECT_PASSED: Health.SUSPECT,
    CheckStanding.FAILED: Health.FAILED,
    CheckStanding.FAILED_PASSED: Health.FAILED,
}

_REASONS: dict[CheckStanding, str] = {
    CheckStanding.UNSURE: "could not tell",
    CheckStanding.DEGRADED: "warned in its last run",
    CheckStanding.SUSPECT: "failed; a second failure confirms it, two passes in a row clear it",
    CheckStanding.SUSPECT_PASSED: "failed and has passed once since; one more pass clears it",
    CheckStanding.FAILED: "failed and was confirmed; two passes in a row clear it",
    CheckStanding.FAILED_PASSED: "failed, was confirmed and has passed once since; one more pass clears it",
}

_BEST_TO_WORST = (Health.HEALTHY, Health.UNKNOWN, Health.DEGRADED, Health.SUSPECT, Health.FAILED)


def present_health(last: Health, *, lost: bool) -> Health:
    """The health that selections, counts, lists, metrics and the API show for a node whose evidence says `last`.

    A lost node is not HEALTHY, because nobody knows what has happened since. Faults stay: silence mends nothing.
    """
    return Health.UNKNOWN if lost and last is Health.HEALTHY else last


_HEALTH_OF_OTHERS = {Severity.WARNING: Health.DEGRADED, Severity.ERROR: Health.SUSPECT}

_HARDWARE = frozenset({Action.RESET_GPU, Action.REBOOT_NODE, Action.INSPECT_HARDWARE, Action.REPLACE})

MOST_CHECKS = 2 * MOST_NAMES
"""Maximum number of checks of one node that the coordinator remembers: all that it can announce, and as many older
ones.
"""

MOST_STANDING = 2 * MOST_NAMES
"""Maximum number of findings of its own checks that stand against one node, and of comparisons. The oldest go first."""

MOST_STANDING_BYTES = 256 << 10
"""Size of these findings as JSON. The coordinator stores and announces all of them with every change. Sixteen devices,
each with the stderr of a process, need half of it."""

MOST_EVIDENCE_BYTES = 8192
"""Maximum size, as JSON, of the evidence of a standing finding: enough for the stderr of a run.

The coordinator keeps standing findings in memory, in stories and in the API. Larger evidence stays in the run.
"""

_STANDING_SEVERITIES = frozenset({Severity.WARNING, Severity.UNKNOWN, Severity.ERROR})


HeldFindings = dict[tuple[str, str], tuple[NodeFinding, ...]]
"""The findings that stand against the node, by node and subject of comparison."""

Uuids = Mapping[int, str]
"""The UUIDs of the devices of a node, by index."""

NO_UUIDS: Uuids = MappingProxyType({})


def outcome_of(run: Run) -> HealthOutcome | None:
    """The health outcome of `run`; None if it says nothing about the health of its node."""
    if run.group is not None or run.verdict is Verdict.SKIPPED:
        return None
    if run.verdict is Verdict.FAIL and any(finding.action in _HARDWARE for finding in run.findings):
        return HealthOutcome.BROKEN
    return HealthOutcome(run.verdict)


@dataclass(frozen=True, slots=True)
class CheckEvidence:
    """The standing of one check, and the findings behind it."""

    standing: CheckStanding = CheckStanding.UNSURE
    findings: tuple[NodeFinding, ...] = ()

    def after(self, run: Run, outcome: HealthOutcome, uuids: Uuids) -> "CheckEvidence":
        """The evidence after another run; `uuids` are those of the node's devices."""
        standing = MOVES[self.standing, outcome]
        found = _standing_findings(run, self.findings, uuids)
        if HEALTH[standing] in (Health.SUSPECT, Health.FAILED) and outcome not in (
            HealthOutcome.FAIL,
            HealthOutcome.BROKEN,
        ):
            again = {_what(finding) for finding in found}
            found += tuple(old for old in self.findings if _what(old) not in again)
        return CheckEvidence(standing, found)


GOOD = CheckEvidence(CheckStanding.GOOD)
"""One object for all checks that pass. Most do."""


@dataclass(slots=True)
class Evidence:
    """All evidence about one node.

    By check: the evidence of its runs, the last verdicts, and convictions by sweeps. By subject: findings of
    comparisons with the fleet and with the node's own past. By code: misconduct of the agent.
    """

    checks: dict[str, CheckEvidence] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    convictions: dict[str, NodeFinding] = field(default_factory=dict)
    comparisons: dict[str, tuple[NodeFinding, ...]] = field(default_factory=dict)
    conduct: dict[str, NodeFinding] = field(default_factory=dict)

    def add(self, run: Run, uuids: Uuids = NO_UUIDS) -> bool:
        """Adds a run of a node whose devices have these UUIDs now. Returns whether more than the last verdicts changed.

        A finding keeps the UUID: after a reboot without a broken GPU, a healthy one may have its index.
        """
        if run.check not in self.verdicts and len(self.verdicts) >= MOST_CHECKS:
            return False
        self.verdicts[run.check] = run.verdict
        outcome = outcome_of(run)
        before = self.checks.get(run.check)
        if outcome is None or (outcome is HealthOutcome.PASS and before is GOOD):
            return False
        after = (before or CheckEvidence()).after(run, outcome, uuids)
        if after.findings:
            others = (finding for name, check in self.checks.items() if name != run.check for finding in check.findings)
            after = replace(after, findings=_fitting(after.findings, others) or after.findings[:1])
        self.checks[run.check] = GOOD if after == GOOD else after
        return after != before

    def date_as(self, stored: Iterable[StandingFinding]) -> None:
        """Takes over the times and devices of stored findings after a restart.

        The stored runs do not reach back to the first one, their times are by the node's clock, and they have only
        indexes of devices.
        """
        known = {finding.key: finding for finding in stored}
        for name, check in self.checks.items():
            if check.findings:
                self.checks[name] = CheckEvidence(check.standing, _dated_as(known, check.findings))
        for subject, findings in self.comparisons.items():
            self.comparisons[subject] = _dated_as(known, findings)

    def convict(self, finding: NodeFinding) -> None:
        self.convictions[finding.check] = finding

    def clear(self, check: str, good_runs: int) -> bool:
        """Counts good runs against the conviction by a sweep with `check`. Returns whether there was one.

        One good run removes the conviction, unless the fault comes and goes.
        """
        if (finding := self.convictions.pop(check, None)) is None:
            return False
        if (stands := after_good_runs(finding, good_runs)) is not None:
            self.convictions[check] = stands
        return True

    def compare(self, subject: str, findings: tuple[NodeFinding, ...]) -> tuple[NodeFinding, ...] | None:
        """Replaces the findings of one comparison. Returns the earlier ones; None if there were and are none."""
        before = self.comparisons.pop(subject, ())
        stood = {_what(finding): finding for finding in before}
        if kept := _fitting(findings, self._compared):
            self.comparisons[subject] = tuple(_standing_again(finding, stood.get(_what(finding))) for finding in kept)
        return before if before or kept else None

    def add_misconduct(self, finding: NodeFinding) -> None:
        """Adds a finding about the node's agent."""
        self.conduct[finding.code] = finding

    def remove_misconduct(self, code: str) -> None:
        """Removes the finding with this code, if there is one."""
        self.conduct.pop(code, None)

    @property
    def health(self) -> Health:
        if self.convictions:
            return Health.FAILED
        standings = (HEALTH[check.standing] for check in self.checks.values())
        others = (_HEALTH_OF_OTHERS[finding.severity] for finding in (*self._compared, *self.conduct.values()))
        return max((*standings, *others), key=_BEST_TO_WORST.index, default=Health.UNKNOWN)

    @property
    def findings(self) -> tuple[NodeFinding, ...]:
        """The findings that stand against the node, convictions first."""
        own = (finding for check in self.checks.values() for finding in check.findings)
        return (*self.convictions.values(), *own, *self._compared, *self.conduct.values())

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the node is not healthy: one sentence for each reason."""
        convicted = (finding.summary for finding in self.convictions.values())
        bad = (f"{name} {_REASONS[c.standing]}" for name, c in self.checks.items() if c.standing in _REASONS)
        others = (finding.summary for finding in (*self._compared, *self.conduct.values()))
        found = (*convicted, *bad, *others)
        return found if found or self.checks else ("nothing has been measured yet",)

    @property
    def _compared(self) -> Iterator[NodeFinding]:
        return (finding for findings in self.comparisons.values() for finding in findings)


def standing_finding(finding: Finding, run: Run, uuids: Uuids, before: NodeFinding | None = None) -> NodeFinding:
    """A finding of `run` that stands against its node. `before` is the same finding from earlier runs."""
    uuid = "" if finding.device is None else uuids.get(finding.device, "")
    since, runs = (run.started_at, 1) if before is None else (before.since, before.runs + 1)
    known = {**dict(finding), "evidence": _kept(finding.evidence, run)}
    return NodeFinding(**known, check=run.check, run=run.id, since=since, seen=run.started_at, runs=runs, uuid=uuid)


def _fitting(findings: Iterable[NodeFinding], others: Iterable[NodeFinding]) -> tuple[NodeFinding, ...]:
    """The first of these findings, as many as may stand beside `others`."""
    others = tuple(others)
    return first_within(findings, MOST_STANDING - len(others), MOST_STANDING_BYTES - size_of(others))


def _kept(evidence: Json, run: Run) -> Json:
    """The evidence of a standing finding; only its key numbers and a note if it is too large."""
    if not evidence or len(to_json(evidence)) <= MOST_EVIDENCE_BYTES:
        return evidence
    numbers: Json = {name: evidence[name] for name in NUMBERS if isinstance(evidence.get(name), int)}
    return {**numbers, "note": f"the evidence is too large to be kept here; see run {run.id}"}


def _what(finding: Finding) -> tuple[str, int | None, str]:
    """The identity of a finding when a check finds it again: code, device, and number."""
    return finding.code, finding.device, number_in(finding.evidence)


def _dated_as(
    known: Mapping[FindingKey, StandingFinding], findings: tuple[NodeFinding, ...]
) -> tuple[NodeFinding, ...]:
    return tuple(_as_known(finding, known.get((finding.check, *_what(finding)))) for finding in findings)


def _as_known(finding: NodeFinding, stored: StandingFinding | None) -> NodeFinding:
    if stored is None:
        return finding
    if stored.run != finding.run:
        return finding.model_copy(update={"since": stored.since})
    return finding.model_copy(update={"since": stored.since, "seen": stored.seen, "uuid": stored.uuid})


def _standing_again(finding: NodeFinding, before: NodeFinding | None) -> NodeFinding:
    if before is None:
        return finding
    return finding.model_copy(update={"since": before.since, "runs": before.runs + 1})


def _standing_findings(run: Run, before: tuple[NodeFinding, ...], uuids: Uuids) -> tuple[NodeFinding, ...]:
    """The findings of `run` that stand against its node."""
    stood = {_what(finding): finding for finding in before}
    return tuple(
        standing_finding(finding, run, uuids, stood.get(_what(finding)))
        for finding in run.findings
        if finding.severity in _STANDING_SEVERITIES
    )


def held_findings(
    held: Mapping[tuple[str, str], tuple[Finding, ...]], run: Run, uuids_of: Callable[[str], Uuids]
) -> HeldFindings:
    """The findings from comparing `run`, as findings that stand against their nodes."""
    return {
        (node, subject): tuple(standing_finding(finding, run, uuids_of(node)) for finding in findings)
        for (node, subject), findings in held.items()
    }
