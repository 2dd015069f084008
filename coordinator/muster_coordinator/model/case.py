"""The case of a node: everything that decisions about its service state are made from, as it is stored and served."""

from muster.model import Data, Instant, Json, Name, Seconds, ServiceState
from muster.transition import Mark, SchedulerNode
from muster_coordinator.model.charge import Charge, Key
from muster_coordinator.model.demand import Demand, Prospect

OUT = frozenset({ServiceState.CORDONED, ServiceState.PROBATION})
"""The states in which we have taken a node out of service. One that is ACCEPTING was never in."""

KEEPING_OUT = frozenset({Mark.FOREIGN, Mark.OURS})
"""The marks with which a scheduler gives a node no work, whatever we have decided meanwhile."""


class Hold(Data):
    """That muster keeps its hands off a node, on whose word and why."""

    by: str
    reason: str
    at: Instant


class Sighting(Data):
    """When a finding was found, the latest last."""

    check: Name
    code: str
    device: int | None
    number: str = ""
    times: tuple[Instant, ...]

    @property
    def key(self) -> Key:
        return self.check, self.code, self.device, self.number


class Question(Data):
    """That a check was asked to find again what a run has found: how often, the last time as `test`.

    It will be asked once more at `again_at`, of which nothing is known before a sweep that was begun for it has ended.
    """

    run: str
    test: Name
    times: int
    again_at: Instant | None


class Test(Data):
    """A check that a node must pass. One that is `strict` must not be SKIPPED."""

    __test__ = False  # pytest takes it for a test of its own otherwise

    check: Name
    params: Json = {}
    strict: bool = False


class Trial(Data):
    """How far a node has come with its tests.

    `passed` are the rounds in a row that it has passed, `waiting` the tests of this round that are still to come, the
    first of which is under way as `test` and will say nothing any more if it has not until `overdue_at`; a sweep tells
    its end by itself. Between two rounds there is none until `next_at`; `trouble` says why the last round did not
    count, and `fruitless` are the rounds in a row that brought it no further.
    """

    begun: Instant
    passed: int = 0
    waiting: tuple[Test, ...] = ()
    test: Name | None = None
    overdue_at: Instant | None = None
    next_at: Instant = 0.0
    trouble: str = ""
    fruitless: int = 0


class Case(Data):
    """What is known and decided about one node.

    - `state` and `since`: its service state, and since when; in a `dry_run` it was only pretended
    - `place`: its failure domain; `lost_at`: since when it is silent; `listed`: some scheduler has had it; `gone`: it
      has left the fleet, as it is silent and no scheduler has it any more
    - `charges`, `sightings`: what stands against it, and when that was found; `demand`: what the policy makes of it,
      `accused_at` since when, and `cause_since` for its present cause; `prospect`: what the policy will make of it in
      time; what was found before `absolved_at`, a person has let pass
    - `fit`: whether it has been examined and is healthy; `own_checks`: which checks it runs by itself; `patience_s`: by
      check that it runs alone, how long a run that it was asked for may say nothing
    - `hold`: a person's word, which counts for more than ours; `views`: how schedulers have it, by actor
    - `asked`: by check, the second opinion that it was asked for
    - `frozen_by`: the trouble that so many have that no node is taken out; `let_pass`: the trouble of which a person
      has said that nodes may be taken out although many have it
    - `taken_out`: when it was taken out so far, or failed its tests and stayed out; `accusers`: the checks that were
      the reason the last time
    - `may_return`: it was away or somebody asked, so that it can be tested again; `trial`: how far the tests are
    - `held_because`: why it is not taken out although it should be
    - `transition`: the last one, which actors have been told or are being told
    - `kept_out`: actors keep it out until it is accepted, as there was room for that when it joined
    - `closed_as`: the state in which actors were told in earnest to give it no work, until all have let it in again
    - `announced`: actors show that it is HELD
    """

    node: Name
    state: ServiceState = ServiceState.ACCEPTING
    since: Instant
    dry_run: bool = False
    place: str | None = None
    lost_at: Instant | None = None
    listed: bool = False
    gone: bool = False
    charges: tuple[Charge, ...] = ()
    sightings: tuple[Sighting, ...] = ()
    demand: Demand | None = None
    prospect: Prospect | None = None
    accused_at: Instant | None = None
    cause_since: Instant | None = None
    absolved_at: Instant = 0.0
    fit: bool = False
    own_checks: tuple[Name, ...] = ()
    patience_s: dict[Name, Seconds] = {}
    hold: Hold | None = None
    views: dict[Name, SchedulerNode] = {}
    asked: dict[Name, Question] = {}
    frozen_by: str | None = None
    let_pass: str | None = None
    taken_out: tuple[Instant, ...] = ()
    accusers: tuple[Name, ...] = ()
    may_return: str | None = None
    trial: Trial | None = None
    held_because: str = ""
    transition: Name | None = None
    kept_out: bool = False
    closed_as: ServiceState | None = None
    announced: bool = False

    @property
    def is_member(self) -> bool:
        """Whether it counts as part of the fleet's capacity."""
        return not self.gone and self.state is not ServiceState.ACCEPTING

    @property
    def online(self) -> bool:
        """Whether its heartbeat is there."""
        return self.lost_at is None

    def is_long_gone(self, before: float, left_before: float) -> bool:
        """Whether it was away since `before`, and no scheduler has it.

        For one that has left the fleet, `left_before` counts when nobody holds it and it was never out.
        """
        if self.lost_at is None or self.views:
            return False
        is_plain = self.gone and self.hold is None and not self.taken_out
        return self.lost_at < (left_before if is_plain else before)

    def awaits(self, test: str) -> bool:
        """Whether this is the test that is under way, or a second opinion that it was asked for."""
        is_next = self.trial is not None and self.trial.test == test
        return is_next or any(question.test == test for question in self.asked.values())

    @property
    def is_away(self) -> bool:
        """Whether it gives no capacity now, whoever or whatever is the reason."""
        is_out = self.state in OUT or self.closed_as is not None
        return is_out or not self.online or any(view.mark in KEEPING_OUT for view in self.views.values())

    @property
    def is_kept_out(self) -> bool:
        """Whether it is new, and kept out until it is accepted."""
        return self.kept_out and not self.gone and self.state is ServiceState.ACCEPTING

    @property
    def leaving(self) -> str | None:
        """Why it goes away as planned; None when it stays."""
        return next((view.leaving for view in self.views.values() if view.leaving is not None), None)

    @property
    def hands_off(self) -> str | None:
        """Why we may do nothing about it; None when we may."""
        if self.hold is not None:
            return f"{self.hold.by} holds it: {self.hold.reason}"
        for actor, view in self.views.items():
            if view.opted_out:
                return f"it has opted out ({actor})"
            if view.mark is Mark.FOREIGN:
                return f"somebody else keeps it out ({actor}): {view.detail or 'without a reason'}"
        return None
