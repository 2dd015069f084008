"""What a policy would have done with one node, run by run.

Only what the node's own checks and sweeps have found is replayed. What comparing it with the fleet has found, that it
was silent, and budgets, holds and freezes are not: each of them hangs on other nodes or on people.
"""

from dataclasses import dataclass, field

from muster.model import Run, Severity
from muster_coordinator.evidence.health import Evidence
from muster_coordinator.evidence.standing_findings import standing_findings_of
from muster_coordinator.model.findings import StandingFinding
from muster_coordinator.model.nodes import NodeFinding
from muster_coordinator.model.quarantine import FindingTimes, Requirement
from muster_coordinator.quarantine.policy import Policy, times_after, why_spared


@dataclass(frozen=True, slots=True)
class TakenOut:
    """That the node would have gone out of service, when and why."""

    at: float
    demand: Requirement


@dataclass(slots=True)
class Rehearsal:
    """A node under a policy; it takes what happened to the node in the order in which it did.

    `first` is when and why the node would have gone out of service first, `times` how often it would have gone.
    """

    policy: Policy
    first: TakenOut | None = None
    times: int = 0
    _evidence: Evidence = field(default_factory=Evidence)
    _errors: dict[str, str] = field(default_factory=dict)
    _acted_on: set[str] = field(default_factory=set)
    _sightings: tuple[FindingTimes, ...] = ()
    _is_out: bool = False
    _look_at: float | None = None

    def take_run(self, run: Run) -> None:
        """Takes in what a run has found."""
        at = run.started_at + run.duration_s
        self.pass_time(at)
        if self._evidence.add(run):
            self._reconsider(at)

    def convict(self, finding: NodeFinding) -> None:
        """Takes in that a sweep has convicted the node."""
        self.pass_time(finding.seen)
        self._evidence.convict(finding)
        self._reconsider(finding.seen)

    def clear(self, check: str, at: float) -> None:
        """Takes in that a sweep with `check` has cleared the node."""
        self.pass_time(at)
        if self._evidence.clear(check):
            self._reconsider(at)

    def pass_time(self, until: float) -> None:
        """Looks again at all times at which the policy says something else although nothing has happened."""
        while self._look_at is not None and self._look_at <= until:
            self._reconsider(self._look_at)

    @property
    def spared(self) -> dict[str, str]:
        """By code, the errors that were found and would not have taken the node out, and why not."""
        return {code: reason for code, reason in self._errors.items() if code not in self._acted_on}

    def _reconsider(self, now: float) -> None:
        charges = standing_findings_of(self._evidence)
        self._sightings = times_after(self._sightings, charges)
        times = {sighting.key: sighting.times for sighting in self._sightings}
        result = self.policy.evaluate(charges, times, now)
        demand, self._look_at = result.requirement, result.next_change
        errors = (charge for charge in charges if charge.severity is Severity.ERROR)
        self._errors.update((charge.code, self._why_not(charge)) for charge in errors)
        if demand is None:
            self._is_out = False
        elif demand.is_proven:
            self._acted_on.update(demand.codes)
            self._take_out(demand, now)

    def _take_out(self, demand: Requirement, now: float) -> None:
        if self._is_out:
            return
        self._is_out = True
        self.first = self.first or TakenOut(now, demand)
        self.times += 1

    def _why_not(self, charge: StandingFinding) -> str:
        row = self.policy.row_of(charge)
        if row is None or not row.takes_out:
            return why_spared(row)
        return f"row {row.name} had it not often, long or well founded enough"
