"""Which nodes may be cordoned now: mass events, the budget, the rate, and nodes that are worse.

Nodes are admitted in the order of `records.rank`: the most urgent first, then the one for which it was required first.
A mass event, a used-up budget or a used-up rate stops every node. A full failure domain stops only its own nodes, and a
node that is catching up stops only itself. A node that is not admitted blocks no other node. Example with the defaults
in a fleet of 20: the budget is 2, one node is away and three must be drained. The most urgent one is cordoned; the
others wait with `Wait.BUDGET` until one node is back.
"""

from collections.abc import Sequence
from itertools import chain
from math import ceil

from muster.model import ServiceState
from muster.quarantine_settings import QuarantineSettings
from muster_coordinator.model.findings import cause_label
from muster_coordinator.model.quarantine import MassEvent, QuarantineRecord, Wait
from muster_coordinator.quarantine.backlogs import Backlogs
from muster_coordinator.quarantine.budget import Limits, RateWindow
from muster_coordinator.quarantine.change import Change, state_note
from muster_coordinator.quarantine.desired import ARROWS, Rules, StateStep
from muster_coordinator.quarantine.records import Records

_TEXTS = {
    Wait.LAST_NODE: "Not drained: the last node in service is never drained",
    Wait.ORDER: "Not drained yet: worse or longer-waiting nodes go first",
    Wait.CATCHING_UP: "Not drained yet: older reports of the node have not all arrived",
}
"""Why a node waits, where that depends on no number."""


MassEvents = Sequence[MassEvent]
"""The mass events that stand."""


class Admission:
    """Admits nodes in `records` that must be cordoned, by `settings`. Nodes with `backlogs` may have to wait.

    With `keeps_new_out`, actors keep a new node out until it is accepted.
    """

    def __init__(self, settings: QuarantineSettings, records: Records, backlogs: Backlogs, rules: Rules) -> None:
        self.keeps_new_out = settings.keep_new_out
        self._settings = settings
        self._records = records
        self._backlogs = backlogs
        self._rules = rules
        self._limits = Limits(settings.limits)
        self._rate = RateWindow(settings.limits.per_minute)

    def restore(self) -> None:
        """Takes over the rate from the records."""
        decisions = (record.decision for record in self._records.by_node.values())
        admitted = ({*decision.cordoned_at}.difference(decision.failed_at) for decision in decisions)
        for moment in sorted(chain.from_iterable(admitted)):
            self._rate.note(moment)

    def note_cordon(self, now: float) -> None:
        """Counts a node that is cordoned towards the rate."""
        self._rate.note(now)

    def admit(
        self, record: QuarantineRecord, reason: str, mass_events: MassEvents, now: float, *, shows_held: bool
    ) -> Change:
        """The change that cordons a node, or has it wait; `shows_held`: its latest transition says that it waits.

        A node that is catching up stays as it is: its fault may have cleared.
        """
        wait = self.wait_of(record, mass_events, now)
        if wait is None:
            return Change(record, step=StateStep.CORDON, reason=reason)
        text = self.text_of(record, wait, mass_events, now)
        waiting = Change(record.with_decision(waits_for=wait), reason=text)
        if wait is Wait.MASS_EVENT:
            is_news = record.decision.waits_for is not wait
            story = state_note(record, record.state, text, self._rules, now=now)
            return waiting._replace(commands=(story,)) if is_news else waiting
        if wait is Wait.CATCHING_UP:
            return waiting
        if (record.state, StateStep.WAIT) in ARROWS:
            return waiting._replace(step=StateStep.WAIT)
        is_unknown = record.state is ServiceState.HELD and not shows_held
        return waiting._replace(transition_from=record.state) if is_unknown and self.waits_long(record) else waiting

    def wait_of(self, record: QuarantineRecord, mass_events: MassEvents, now: float) -> Wait | None:
        """Why a node may not be cordoned now; None when it may.

        Worse nodes that are admitted are cordoned first. A worse node that is catching up keeps its place in the
        budget: after a start in enforce, the budget must go to the worst nodes, not to those that are heard first.
        """
        wait = self._wait_alone(record, mass_events, now)
        if wait is not None:
            return wait
        reserved_for: list[QuarantineRecord] = []
        for other in self._records.before(record):
            if must_go(other) and self._wait_for_limits(other, now) is None:
                if other.node not in self._backlogs.catching_up:
                    return Wait.ORDER
                reserved_for.append(other)
        return Wait.ORDER if self._limits.wait_of(record, self._records.census, reserved_for) else None

    def has_changed(self, record: QuarantineRecord, mass_events: MassEvents, now: float) -> bool:
        """Whether a node that waits may be cordoned now, or waits for something else than before."""
        return must_go(record) and self._wait_alone(record, mass_events, now) is not record.decision.waits_for

    def basis(self, mass_events: MassEvents, now: float) -> tuple[object, ...]:
        """Everything that `has_changed` depends on. While it stays the same, the answers stay the same."""
        return self._records.version, mass_events, self._backlogs.version, self._rate.admits(now)

    def next_change(self, now: float) -> float | None:
        """When time alone may admit a waiting node; None when only an event may."""
        return self._rate.admits_at(now) if self._records.waiting else None

    def waits_long(self, record: QuarantineRecord) -> bool:
        """Whether a node waits for the budget, or behind more nodes than the rate admits in a minute."""
        is_exhausted = self._limits.wait_of(record, self._records.census) is not None
        is_counted = self._records.by_node[record.node].decision.waits_for is not None
        return is_exhausted or self._records.waiting + (not is_counted) > self._rate.per_minute

    def admits_new(self) -> bool:
        """Whether actors may keep out one more new node."""
        return self._limits.admits_new(self._records.census)

    @property
    def budget_text(self) -> str:
        """That the budget of the fleet is reached, with its numbers."""
        members = self._records.census.members
        return f"budget of {self._limits.limit(members)} of {members} reached"

    def text_of(self, record: QuarantineRecord, wait: Wait, mass_events: MassEvents, now: float) -> str:
        """Why a node waits, with the numbers of `now`."""
        census, settings = self._records.census, self._settings.limits
        match wait:
            case Wait.BUDGET:
                return f"Not drained: {self.budget_text}"
            case Wait.DOMAIN_BUDGET:
                domain = str(record.evidence.domain)
                members = census.members_of[domain]
                limit = self._limits.domain_limit(members)
                return f"Not drained: budget of {settings.domain} {domain}, {limit} of {members}, reached"
            case Wait.RATE:
                admits_at = self._rate.admits_at(now)
                return f"Rate limit: next drain in {0 if admits_at is None else ceil(admits_at - now)} s"
            case Wait.MASS_EVENT:
                return f"Draining paused fleet-wide: {_mass_event_text(mass_events)}"
            case _:
                return _TEXTS[wait]

    def _wait_alone(self, record: QuarantineRecord, mass_events: MassEvents, now: float) -> Wait | None:
        """Why a node may not be cordoned now, leaving other waiting nodes aside; None when it may."""
        if mass_events:
            return Wait.MASS_EVENT
        return Wait.CATCHING_UP if record.node in self._backlogs.catching_up else self._wait_for_limits(record, now)

    def _wait_for_limits(self, record: QuarantineRecord, now: float) -> Wait | None:
        """The same during no mass event, for a node that has caught up."""
        return self._limits.wait_of(record, self._records.census) or (None if self._rate.admits(now) else Wait.RATE)


def _mass_event_text(mass_events: MassEvents) -> str:
    if not mass_events:
        return "mass event"
    event = mass_events[0]
    return f"{event.nodes} nodes report {cause_label(event.cause)}"


def must_go(record: QuarantineRecord) -> bool:
    """Whether a node must be cordoned as soon as it is admitted."""
    return record.is_proven and record.left_alone_because is None
