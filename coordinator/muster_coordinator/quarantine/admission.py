"""Which nodes may be cordoned now: mass events, the budget, the rate, and nodes that are worse.

Nodes are admitted in the order of `records.rank`: the most urgent first, then the one for which it was required first.
A mass event, a used-up budget or a used-up rate stops every node. A full failure domain stops only its own nodes, and a
node that is catching up stops only itself. A node that is not admitted blocks no other node. Example with the defaults
in a fleet of 20: the budget is 2, one node is away and three must be drained. The most urgent one is cordoned; the
others wait with `Wait.BUDGET` until one node is back.
"""

from collections.abc import Iterator
from itertools import chain
from math import ceil

from muster.quarantine_settings import QuarantineSettings
from muster_coordinator.model.findings import cause_label
from muster_coordinator.model.quarantine import FleetState, QuarantineRecord, Wait
from muster_coordinator.quarantine.budget import Limits, RateWindow
from muster_coordinator.quarantine.catching_up import CatchingUp
from muster_coordinator.quarantine.mass_events import fleet_state_after
from muster_coordinator.quarantine.records import Records

_TEXTS = {
    Wait.LAST_NODE: "Not drained: the last node in service is never drained",
    Wait.ORDER: "Not drained yet: worse or longer-waiting nodes go first",
    Wait.CATCHING_UP: "Not drained yet: older reports of the node have not all arrived",
}
"""Why a node waits, where that depends on no number."""


class Admission:
    """Admits nodes that must be cordoned, by `settings`.

    `fleet` has the mass events that stand and those that a person lifted; `catching_up` are the nodes whose older
    reports have not all arrived.
    """

    def __init__(self, settings: QuarantineSettings, records: Records) -> None:
        self.fleet = self._saved = FleetState()
        self.catching_up = CatchingUp()
        self._settings = settings
        self._records = records
        self._limits = Limits(settings.limits)
        self._rate = RateWindow(settings.limits.per_minute)
        self._admitted_at: tuple[object, ...] = ()  # what the nodes that wait were last admitted by

    def restore(self, fleet: FleetState) -> None:
        """Takes over the rate and the stored mass events, if enough nodes still share their cause."""
        decisions = (record.decision for record in self._records.by_node.values())
        admitted = ({*decision.cordoned_at}.difference(decision.failed_at) for decision in decisions)
        for moment in sorted(chain.from_iterable(admitted)):
            self._rate.note(moment)
        self.fleet = self._saved = fleet
        stored = {*(event.cause for event in fleet.mass_events), *fleet.lifted}
        for cause in sorted({*self._records.nodes_by_cause, *stored}):
            self.count_cause(cause, max(self._records.nodes_with(cause).values(), default=0.0))

    def take_unsaved(self) -> FleetState | None:
        """The fleet's state when it changed since it was last stored, else None."""
        if self.fleet == self._saved:
            return None
        self._saved = self.fleet
        return self.fleet

    def note_cordon(self, now: float) -> None:
        """Counts a node that is cordoned towards the rate."""
        self._rate.note(now)

    def count_cause(self, cause: str, now: float) -> None:
        """Counts the nodes with a cause again, which may begin or end a mass event."""
        nodes, members = self._records.nodes_with(cause), self._records.census.members
        self.fleet = fleet_state_after(self.fleet, cause, nodes, members, settings=self._settings.mass_event, now=now)

    def wait_of(self, record: QuarantineRecord, now: float) -> Wait | None:
        """Why a node may not be cordoned now; None when it may.

        Worse nodes that are admitted are cordoned first. If a worse node is catching up, its room is kept: after a
        start in enforce, the budget must go to the worst nodes, not to those that are heard first.
        """
        wait = self._wait_alone(record, now)
        if wait is not None:
            return wait
        kept_for: list[QuarantineRecord] = []
        for other in self._records.before(record):
            if must_go(other) and self._wait_for_room(other, now) is None:
                if other.node not in self.catching_up:
                    return Wait.ORDER
                kept_for.append(other)
        return Wait.ORDER if self._limits.no_room(record, self._records.census, kept_for) else None

    def take_changed(self, now: float) -> Iterator[QuarantineRecord]:
        """The nodes that wait and may be cordoned now, or wait for something else than before; the worst first.

        The answer depends only on the records, the mass events, the nodes that are catching up, and whether the rate
        has room. While none of these changes, 1,000 waiting nodes cost nothing.
        """
        if self._admitted_at == self._known(now):
            return
        for waiting in self._records.in_order():
            record = self._records.by_node[waiting.node]  # the node before it may have changed it
            if must_go(record) and self._wait_alone(record, now) is not record.decision.waits_for:
                yield record
        self._admitted_at = self._known(now)

    def next_change(self, now: float) -> float | None:
        """When time alone may admit a waiting node; None when only an event may."""
        return self._rate.room_at(now) if self._records.waiting else None

    def waits_long(self, record: QuarantineRecord) -> bool:
        """Whether a node waits for room, or behind more nodes than the rate admits in a minute."""
        has_no_room = self._limits.no_room(record, self._records.census) is not None
        return has_no_room or self._records.waiting > self._rate.per_minute

    def lets_keep_out(self) -> bool:
        """Whether actors may keep out one more new node."""
        return self._limits.lets_keep_out(self._records.census)

    def text_of(self, record: QuarantineRecord, wait: Wait, now: float) -> str:
        """Why a node waits, with the numbers of `now`."""
        census, settings = self._records.census, self._settings.limits
        match wait:
            case Wait.BUDGET:
                limit = self._limits.limit(census.members)
                return f"Not drained: budget of {limit} of {census.members} reached"
            case Wait.DOMAIN_BUDGET:
                domain = str(record.evidence.domain)
                members = census.members_of[domain]
                limit = self._limits.domain_limit(members)
                return f"Not drained: budget of {settings.domain} {domain}, {limit} of {members}, reached"
            case Wait.RATE:
                room_at = self._rate.room_at(now)
                return f"Rate limit: next drain in {0 if room_at is None else ceil(room_at - now)} s"
            case Wait.MASS_EVENT:
                return f"Draining paused fleet-wide: {self._mass_event_text()}"
            case _:
                return _TEXTS[wait]

    def _mass_event_text(self) -> str:
        if not self.fleet.mass_events:
            return "mass event"
        event = self.fleet.mass_events[0]
        return f"{event.nodes} nodes report {cause_label(event.cause)}"

    def _wait_alone(self, record: QuarantineRecord, now: float) -> Wait | None:
        """Why a node may not be cordoned now, leaving other waiting nodes aside; None when it may."""
        if record.node in self.catching_up and not self.fleet.mass_events:
            return Wait.CATCHING_UP
        return self._wait_for_room(record, now)

    def _wait_for_room(self, record: QuarantineRecord, now: float) -> Wait | None:
        if self.fleet.mass_events:
            return Wait.MASS_EVENT
        return self._limits.no_room(record, self._records.census) or (None if self._rate.has_room(now) else Wait.RATE)

    def _known(self, now: float) -> tuple[object, ...]:
        return self._records.version, self.fleet, self.catching_up.version, self._rate.has_room(now)


def must_go(record: QuarantineRecord) -> bool:
    """Whether a node must be cordoned as soon as it is admitted."""
    return record.is_proven and record.left_alone_because is None
