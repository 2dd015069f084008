"""What the API serves about service states."""

from typing import Literal

from muster.alarm import Alarm
from muster.model import Data, Instant, Name, Seconds, ServiceState
from muster.transition import Cause, PluginText, SchedulerNode
from muster_coordinator.model.findings import StandingFinding
from muster_coordinator.model.old_case_fields import WithOldNames
from muster_coordinator.model.quarantine import (
    FindingTimes,
    Hold,
    MassEvent,
    Probation,
    Requirement,
    SecondOpinion,
    UpcomingRequirement,
    left_alone_because,
)
from muster_coordinator.model.scheduler_marks import kept_off, leaving
from muster_coordinator.model.transitions import ActorOutcome


class ActorView(Data):
    """An actor as it was at the last survey: `summary` says what it acts on, `problem` what keeps it from it."""

    name: str
    summary: PluginText | None = None
    can_cordon: bool = False
    problem: PluginText | None = None


class CaseView(WithOldNames):
    """A node's case, as people and programs read it.

    - `state` and `since`: its service state, and since when; in a `dry_run` it was only pretended
    - `domain`: its failure domain; `lost_at`: since when it is silent; `was_listed`: some scheduler had it once
    - `left`: it left the fleet, as `left` of a node
    - `findings`: the findings that count now, and `seen` when each was found
    - `requirement`: what the policy requires; `required_since`: from when on, and `cause_since`: from when on with its
      present cause; `upcoming`: what it will require in time
    - `ignored_before`: findings seen before then count for nothing, as a person released the node untested
    - `is_fit`: examined and healthy; `unfit_because`: why it is not, which is also why a new node is not accepted yet
    - `own_checks`: the checks that it runs by itself; `silent_after_s`: by check, how long an ordered run may say
      nothing
    - `hold`: a person's request that muster leaves it as it is; `observed`: how schedulers have it, by actor
    - `second_opinions`: by check, the run that is to confirm a finding
    - `frozen_by`, `lifted`: the mass event that keeps it in service, or whose freeze a person lifted
    - `causes`: the findings for which it is drained, or should be, the worst first
    - `cordoned_at`: when it was cordoned so far, or failed its tests and stayed out
    - `retest_checks`: the checks that found what it was cordoned for; `retest_because`: why it may be tested although
      faults have not cleared; `probation`: how far the tests are
    - `held_because`: why it is not cordoned although it should be
    - `transition`: the last one, and `outcomes` what came of it at each actor
    - `kept_out_as_new`: actors keep it out until it is accepted; `shut_out_as`: the state for which actors were called
      to drain it, until all have uncordoned it; `shows_held`: actors show that it is HELD
    - `rounds`: rounds of tests to pass in a row; `retest_at`: when a CORDONED node is tested at the earliest
    - `spared`: which errors never drain it, and why; `needs_person`: why it comes back only when a person releases it
    - `will_drain_again`: what still stands after a person released it untested, and drains it when it is found again
    """

    node: Name
    state: ServiceState = ServiceState.ACCEPTING
    since: Instant
    dry_run: bool = False
    domain: str | None = None
    lost_at: Instant | None = None
    was_listed: bool = False
    left: bool = False
    findings: tuple[StandingFinding, ...] = ()
    seen: tuple[FindingTimes, ...] = ()
    requirement: Requirement | None = None
    upcoming: UpcomingRequirement | None = None
    required_since: Instant | None = None
    cause_since: Instant | None = None
    ignored_before: Instant = 0.0
    is_fit: bool = False
    unfit_because: str = ""
    own_checks: tuple[Name, ...] = ()
    silent_after_s: dict[Name, Seconds] = {}
    departure: PluginText | None = None
    hold: Hold | None = None
    observed: dict[Name, SchedulerNode] = {}
    second_opinions: dict[Name, SecondOpinion] = {}
    frozen_by: str | None = None
    lifted: str | None = None
    cordoned_at: tuple[Instant, ...] = ()
    retest_checks: tuple[Name, ...] = ()
    retest_because: str | None = None
    probation: Probation | None = None
    held_because: str = ""
    transition: Name | None = None
    kept_out_as_new: bool = False
    shut_out_as: ServiceState | None = None
    shows_held: bool = False
    outcomes: dict[Name, ActorOutcome] = {}
    rounds: int
    retest_at: Instant | None = None
    spared: tuple[str, ...] = ()
    needs_person: str = ""
    causes: tuple[Cause, ...] = ()
    will_drain_again: tuple[str, ...] = ()

    @property
    def left_alone_because(self) -> str | None:
        """Why muster leaves it alone; None when it does not."""
        return left_alone_because(self.hold, self.observed)

    @property
    def leaving(self) -> str | None:
        """Why it leaves as planned, by its agent or a scheduler; None when it stays."""
        return self.departure or leaving(self.observed)

    @property
    def kept_off(self) -> tuple[str, ...]:
        """How others keep work off it that have not cordoned it."""
        return kept_off(self.observed)


class DomainView(Data):
    """A failure domain with nodes that are away: its nodes, how many are away, and how many may be."""

    name: str
    nodes: int
    away: int
    limit: int


class KeptOffView(Data):
    """Nodes that count as away because others keep work off them, such as by the same taint: how, and which."""

    how: str
    nodes: tuple[Name, ...]


class QuarantineView(Data):
    """How many nodes count, how many are away and may be, which wait to go, and which causes keep all in service.

    Of the nodes that are away, `kept_off` are those that others keep work off without a cordon.
    `catching_up` nodes still deliver older runs from their outboxes, and are not drained meanwhile.
    `alarms` are those that stand.
    """

    mode: Literal["observe", "dry-run", "enforce"]
    nodes: int
    away: int
    limit: int
    per_minute: float
    held: tuple[Name, ...]
    frozen: tuple[MassEvent, ...]
    domains: tuple[DomainView, ...]
    kept_off: tuple[KeptOffView, ...] = ()
    catching_up: int = 0
    alarms: tuple[Alarm, ...] = ()


class BudgetView(Data):
    """The quarantine of the whole fleet, and the actors as they were at the last survey.

    `unheard` are nodes that a scheduler keeps out, as new ones or by our mark, and whose agents have not reported since
    they came: nobody tests and uncordons them.
    """

    quarantine: QuarantineView
    actors: tuple[ActorView, ...]
    unheard: tuple[str, ...] = ()
