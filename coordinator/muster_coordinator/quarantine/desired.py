"""The service state that one node should have, from its own record alone.

| state | when | step |
|---|---|---|
| any | it left the fleet, muster leaves it alone, or the mode is observe | none, or ACCEPT if it is ACCEPTING |
| ACCEPTING | nothing is required, it is fit and passed its tests | ACCEPT |
| ACCEPTING, IN_SERVICE, HELD | the requirement is proven | CORDON, as soon as it is admitted; WAIT until then |
| HELD | nothing proven requires it any more | CLEAR |
| CORDONED | nothing is required, or it may be retested; online and not leaving; its wait is over | RETEST |
| PROBATION | a test failed | FAIL |
| PROBATION | all rounds passed and nothing is required | PASS |

RETURN is what a person requested, or did at a scheduler.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from muster.model import ServiceState
from muster.quarantine_settings import AcceptanceTest, QuarantineSettings, ReturnSettings
from muster_coordinator.model.quarantine import QuarantineRecord
from muster_coordinator.model.state_table import parse_state_table

DAY_S = 86_400.0


class StateStep(StrEnum):
    """What leads from one service state to another.

    ACCEPT: a new node is fit. CORDON: proven evidence requires it, and it is admitted. WAIT: the same, but not
    admitted. CLEAR: nothing requires it any more. RETEST: it may be tested. PASS and FAIL: the result of the tests.
    RETURN: a person returned it to service.
    """

    ACCEPT = "ACCEPT"
    CORDON = "CORDON"
    WAIT = "WAIT"
    CLEAR = "CLEAR"
    RETEST = "RETEST"
    PASS = "PASS"
    FAIL = "FAIL"
    RETURN = "RETURN"


_TABLE = """
            ACCEPT      CORDON    WAIT  CLEAR       RETEST     PASS        FAIL      RETURN
ACCEPTING   IN_SERVICE  CORDONED  .     .           .          .           .         IN_SERVICE
IN_SERVICE  .           CORDONED  HELD  .           .          .           .         .
HELD        .           CORDONED  .     IN_SERVICE  .          .           .         IN_SERVICE
CORDONED    .           .         .     .           PROBATION  .           .         IN_SERVICE
PROBATION   .           .         .     .           .          IN_SERVICE  CORDONED  IN_SERVICE
"""

ARROWS = parse_state_table(_TABLE, ServiceState, StateStep)
"""Where each step leads. A step that a state has no arrow for changes nothing."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What the settings say about the states of nodes. `decides` is False in observe mode, `is_dry` True in dry-run.

    With `resumes_everywhere`, a node that a person resumed at one scheduler is in service again. Otherwise it stays as
    it is: the other schedulers keep it drained, and it counts as away.
    """

    decides: bool
    is_dry: bool
    resumes_everywhere: bool
    tests: tuple[AcceptanceTest, ...]
    returning: ReturnSettings

    @classmethod
    def of(cls, settings: QuarantineSettings) -> "Rules":
        return cls(
            decides=settings.mode != "observe",
            is_dry=settings.mode == "dry-run",
            resumes_everywhere=settings.resume_by_hand == "everywhere",
            tests=settings.tests,
            returning=settings.returning,
        )

    @property
    def enforces(self) -> bool:
        """Whether actors drain nodes, and correct schedulers that differ from the decision."""
        return self.decides and not self.is_dry

    def rounds(self, state: ServiceState) -> int:
        """How many rounds of tests in a row a node must pass."""
        return 1 if state is ServiceState.ACCEPTING else self.returning.passes


class Target(NamedTuple):
    """The step that a node should take and why; without a step, `look_again_at` is when time alone may change that."""

    step: StateStep | None = None
    reason: str = ""
    look_again_at: float | None = None


STAY = Target()


def desired(record: QuarantineRecord, rules: Rules, now: float) -> Target:
    """The step that a node should take; its requirement must be the policy's of `now`."""
    if not _may_change(record, rules):
        return STAY
    match record.state:
        case ServiceState.ACCEPTING if record.decision.requirement is None:
            return _accept(record, rules)
        case ServiceState.ACCEPTING | ServiceState.IN_SERVICE | ServiceState.HELD:
            return _cordon(record)
        case ServiceState.CORDONED:
            return _retest(record, rules, now)
        case ServiceState.PROBATION:
            return _return_to_service(record, rules)


def _may_change(record: QuarantineRecord, rules: Rules) -> bool:
    """Whether muster may change the state. A new node that is fit is accepted in every mode, unless somebody holds it.

    In observe mode no actor is called to uncordon a node, so a new node that actors keep out stays ACCEPTING.
    """
    if record.evidence.has_left:
        return False
    if record.state is ServiceState.ACCEPTING and record.decision.requirement is None:
        return record.decision.hold is None and (rules.decides or record.actors.shut_out_as is None)
    return rules.decides and record.left_alone_because is None


def _accept(record: QuarantineRecord, rules: Rules) -> Target:
    needs_tests = rules.decides and bool(rules.tests)
    if not record.evidence.is_fit or (needs_tests and not has_passed(record, rules)):
        return STAY
    return Target(StateStep.ACCEPT, "all checks reported, and it is healthy")


def _cordon(record: QuarantineRecord) -> Target:
    """Cordoned when proven. A HELD node keeps waiting while a second run confirms its finding."""
    requirement = record.decision.requirement
    if requirement is not None and requirement.is_proven:
        return Target(StateStep.CORDON, requirement.reason)
    if record.state is not ServiceState.HELD or record.decision.waits_for is not None:
        return STAY
    what = "no finding" if requirement is None else "no proven finding"
    return Target(StateStep.CLEAR, f"{what} requires draining any more")


def _retest(record: QuarantineRecord, rules: Rules, now: float) -> Target:
    decision = record.decision
    has_cleared = None if decision.requirement is not None else "all faults have cleared"
    reason = decision.retest_because or has_cleared
    if reason is None or not record.is_online or record.leaving is not None:
        return STAY
    if needs_person(decision.cordoned_at, rules.returning):
        return STAY
    at = retest_at(record, rules.returning)
    return Target(StateStep.RETEST, reason) if now >= at else Target(look_again_at=at)


def _return_to_service(record: QuarantineRecord, rules: Rules) -> Target:
    if not has_passed(record, rules) or record.decision.requirement is not None:
        return STAY
    rounds = rules.rounds(record.state)
    return Target(StateStep.PASS, f"passed its tests {'once' if rounds == 1 else f'{rounds} times in a row'}")


def has_passed(record: QuarantineRecord, rules: Rules) -> bool:
    """Whether a node passed as many rounds of tests in a row as it must."""
    probation = record.decision.probation
    return probation is not None and probation.passed >= rules.rounds(record.state)


def recent_cordons(cordoned_at: Sequence[float], returning: ReturnSettings) -> float:
    """How often a node was cordoned before the last time; a cordon `memory_days` earlier counts half, and so on."""
    if not cordoned_at:
        return 0.0
    *before, last = cordoned_at
    half_life_s = returning.memory_days * DAY_S
    return sum(math.exp2(-max(0.0, last - moment) / half_life_s) for moment in before)


def wait_s(cordoned_at: Sequence[float], returning: ReturnSettings) -> float:
    """Minimum time that a node stays out from the last cordon on; each earlier cordon doubles it.

    Example with `wait_s = 600`: 10 min the first time, 20 min the second within days, 40 min the third. A node that
    fails once a year always waits 10 min.
    """
    longer = math.exp2(min(recent_cordons(cordoned_at, returning), 1000.0))
    return min(returning.wait_s * longer, returning.longest_wait_s)


def retest_at(record: QuarantineRecord, returning: ReturnSettings) -> float:
    """When a CORDONED node may be tested, at the earliest."""
    return record.decision.since + wait_s(record.decision.cordoned_at, returning)


def needs_person(cordoned_at: Sequence[float], returning: ReturnSettings) -> bool:
    """Whether it was cordoned so often that only a person returns it to service."""
    return recent_cordons(cordoned_at, returning) > returning.times - 0.5
