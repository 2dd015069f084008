"""What the API serves about service states."""

from typing import Literal

from muster.alarm import Alarm
from muster.model import Data, Instant, Name, Seconds, ServiceState
from muster.transition import Cause, SchedulerNode, Text
from muster_coordinator.model.findings import StandingFinding
from muster_coordinator.model.quarantine import (
    FindingTimes,
    Hold,
    MassEvent,
    Probation,
    Requirement,
    SecondOpinion,
    UpcomingRequirement,
    kept_off,
    left_alone_because,
)
from muster_coordinator.model.transitions import ActorOutcome


class ActorView(Data):
    """An actor as it was at the last survey: `summary` says what it acts on, `problem` what keeps it from it."""

    name: str
    summary: Text | None = None
    can_cordon: bool = False
    problem: Text | None = None


class CaseView(Data):
    """A node's case, as people and programs read it.

    - `state` and `since`: its service state, and since when; in a `dry_run` it was only pretended
    - `place`: its failure domain; `lost_at`: since when it is silent; `listed`: some scheduler had it once; `gone`: it
      left the fleet
    - `charges`, `sightings`: what stands against it, and when that was found; `demand`: what the policy requires,
      `accused_at` since when, and `cause_since` with its present cause; `prospect`: what it will require in time;
      findings seen before `absolved_at` count for nothing, as a person released the node untested
    - `fit`: examined and healthy; `unfit_because`: why it is not, which is also why a new node is not accepted yet
    - `own_checks`: the checks that it runs by itself; `patience_s`: by check, how long an ordered run may say nothing
    - `hold`: a person's request that muster leaves it as it is; `views`: how schedulers have it, by actor
    - `asked`: by check, the second opinion that it was asked for
    - `frozen_by`, `let_pass`: the mass event that keeps it in service, or that a person lifted
    - `causes`: the findings for which it is drained, or should be, the worst first
    - `taken_out`: when it was cordoned so far; `accusers`: the checks that found why, the last time
    - `may_return`: why it may be tested again; `trial`: how far the tests are
    - `held_because`: why it is not cordoned although it should be
    - `transition`: the last one, and `outcomes` what came of it at each actor
    - `kept_out`: actors keep it out until it is accepted; `closed_as`: the state in which actors were told to keep it
      out, until all have uncordoned it; `announced`: actors show that it is HELD
    - `rounds`: rounds of tests to pass in a row; `back_at`: when a CORDONED node is tested at the earliest
    - `spared`: which errors never drain it, and why; `needs_person`: why it comes back only when a person releases it
    - `will_drain_again`: what still stands after a person released it untested, and drains it when it is found again
    """

    node: Name
    state: ServiceState = ServiceState.ACCEPTING
    since: Instant
    dry_run: bool = False
    place: str | None = None
    lost_at: Instant | None = None
    listed: bool = False
    gone: bool = False
    charges: tuple[StandingFinding, ...] = ()
    sightings: tuple[FindingTimes, ...] = ()
    demand: Requirement | None = None
    prospect: UpcomingRequirement | None = None
    accused_at: Instant | None = None
    cause_since: Instant | None = None
    absolved_at: Instant = 0.0
    fit: bool = False
    unfit_because: str = ""
    own_checks: tuple[Name, ...] = ()
    patience_s: dict[Name, Seconds] = {}
    hold: Hold | None = None
    views: dict[Name, SchedulerNode] = {}
    asked: dict[Name, SecondOpinion] = {}
    frozen_by: str | None = None
    let_pass: str | None = None
    taken_out: tuple[Instant, ...] = ()
    accusers: tuple[Name, ...] = ()
    may_return: str | None = None
    trial: Probation | None = None
    held_because: str = ""
    transition: Name | None = None
    kept_out: bool = False
    closed_as: ServiceState | None = None
    announced: bool = False
    outcomes: dict[Name, ActorOutcome] = {}
    rounds: int
    back_at: Instant | None = None
    spared: tuple[str, ...] = ()
    needs_person: str = ""
    causes: tuple[Cause, ...] = ()
    will_drain_again: tuple[str, ...] = ()

    @property
    def left_alone_because(self) -> str | None:
        """Why muster leaves it alone; None when it does not."""
        return left_alone_because(self.hold, self.views)

    @property
    def leaving(self) -> str | None:
        """Why it leaves as planned; None when it stays."""
        return next((view.leaving for view in self.views.values() if view.leaving is not None), None)

    @property
    def kept_off(self) -> tuple[str, ...]:
        """How others keep work off it that have not cordoned it."""
        return kept_off(self.views)


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
