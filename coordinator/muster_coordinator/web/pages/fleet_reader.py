"""Reads the fleet for pages, in slices: with 10,000 nodes other requests and messages get their turn in between."""

import asyncio
from collections.abc import Iterable, Sequence

from muster_coordinator.model.quarantine import QuarantineRecord
from muster_coordinator.model.quarantine_views import BudgetView
from muster_coordinator.runtime.actor_poller import ActorPoller
from muster_coordinator.runtime.link import CoordinatorLink
from muster_coordinator.runtime.pipeline import PRESSING, Pipeline
from muster_coordinator.store.disk_budget import DiskUse
from muster_coordinator.store.recent import asked_since, story_since, transitions_since
from muster_coordinator.store.store import Store
from muster_coordinator.topology.selection import parse_selection
from muster_coordinator.topology.selection_term import Candidate
from muster_coordinator.views.pages.bounded import Bounded
from muster_coordinator.views.pages.fleet_facts import RECENT_S, CoordinatorFacts, FleetFacts
from muster_coordinator.views.pages.lost_capacity import LONGEST_S, SILENCE_KINDS, CapacityHistory
from muster_coordinator.views.pages.needs_person import MOST_TASKS
from muster_coordinator.views.pages.page_row import PageRow, needs_view, row_of_candidate, row_of_view
from muster_coordinator.views.pages.quarantine_page import (
    MOST_DECISIONS,
    CaseGroup,
    QuarantineFacts,
    first_of_each,
    groups_of,
)
from muster_coordinator.views.pages.recent_changes import STORY_KINDS
from muster_coordinator.web.answers import LOOKED_AT, database_use, in_slices

AT_ONCE = 50
"""Nodes that are read at once: 0.5 ms, or 3.5 ms if something is wrong with all of them."""

MOST_ENTRIES = 1_000
"""Maximum number of story entries, and of requests, that are read for what changed lately."""

MOST_SWEEPS = 10
"""Of the latest sweeps. A sweep of 10,000 nodes takes 2 ms to read."""

MOST_TURNS = 5_000
"""Maximum number of transitions, and of silences, from which lost capacity is counted."""

CAPACITY_S = 60.0
"""How long what was read for lost capacity counts while no node goes or returns. Reading 5,000 transitions takes a
quarter of a second."""


class FleetReader:
    """Reads from the parts of the coordinator that know what pages show."""

    def __init__(
        self, *, pipeline: Pipeline, store: Store, link: CoordinatorLink, poller: ActorPoller, disk: DiskUse
    ) -> None:
        self.pipeline = pipeline
        self.store = store
        self._link = link
        self._poller = poller
        self._disk = disk
        self._capacity = CapacityHistory()
        self._capacity_at = 0.0
        self._capacity_of: object = None  # the changes of service states, and the lost nodes, that it was read after

    @property
    def is_current(self) -> bool:
        """Whether the coordinator hears the nodes."""
        return self._link.connected

    async def rows(self, names: Sequence[str] | None = None) -> tuple[PageRow, ...]:
        """The rows of these nodes, or of all."""
        fleet = self.pipeline.fleet
        away = dict(await in_slices(fleet.quarantine_records(), LOOKED_AT, _away))

        def made(some: Sequence[str]) -> Iterable[PageRow]:
            for candidate in fleet.candidates(some):
                is_away = candidate.name in away
                if not needs_view(candidate):
                    yield row_of_candidate(candidate, is_away=is_away)
                elif (view := fleet.node(candidate.name, self.pipeline.clock())) is not None:
                    yield row_of_view(view, is_away=is_away, out_since=away.get(view.name))

        return tuple(await in_slices(fleet.names if names is None else names, AT_ONCE, made))

    async def chosen(self, select: str | None) -> Sequence[Candidate]:
        """The nodes that fit a selection, or all without one. Raises Refused if it is not valid."""
        fleet = self.pipeline.fleet
        selection = None if select is None else parse_selection(select)
        nodes = await in_slices(fleet.names, LOOKED_AT, fleet.candidates)
        if selection is None:
            return nodes
        fitting = frozenset((await asyncio.to_thread(selection.fitting, nodes, fleet.declared)).nodes)
        return [node for node in nodes if node.name in fitting]

    async def facts(self) -> FleetFacts:
        """The whole fleet now."""
        fleet = self.pipeline.fleet
        rows = await self.rows()
        at = self.pipeline.clock()
        story, story_is_cut = await story_since(self.store.database, at - RECENT_S, STORY_KINDS, MOST_ENTRIES)
        asked, asked_is_cut = await asked_since(self.store.database, at - RECENT_S, MOST_ENTRIES)
        sweeps = await self.store.sweeps(MOST_SWEEPS, None)
        quarantine = fleet.quarantine_view()
        held = (fleet.case(name) for name in quarantine.held[:MOST_TASKS])
        return FleetFacts(
            at=at,
            fleet=fleet.view(at).model_copy(update={"database": database_use(self._disk)}),
            rows=rows,
            quarantine=quarantine,
            coordinator=self._coordinator(),
            actors=self._poller.actors,
            unheard=self._poller.unheard(fleet.is_present),
            held=tuple(case for case in held if case is not None),
            sweeps=sweeps.items,
            story=story,
            asked=asked,
            is_cut=story_is_cut or asked_is_cut,
            capacity=await self._capacity_history(at),
        )

    async def quarantine_facts(self) -> QuarantineFacts:
        """The quarantine of the whole fleet now."""
        fleet = self.pipeline.fleet

        def in_groups(records: Iterable[QuarantineRecord]) -> Iterable[tuple[CaseGroup, float, str]]:
            for record in records:
                for group in groups_of(record, fleet.latest_transition(record.node)):
                    yield group, record.decision.since, record.node

        decided = await self.store.decisions(None, MOST_DECISIONS, None)
        chosen = first_of_each(await in_slices(fleet.quarantine_records(), LOOKED_AT, in_groups))
        cases = {
            group: Bounded(tuple(case for name in names.items if (case := fleet.case(name)) is not None), names.rest)
            for group, names in chosen.items()
        }
        unheard = self._poller.unheard(fleet.is_present)
        return QuarantineFacts(
            at=self.pipeline.clock(),
            budget=BudgetView(quarantine=fleet.quarantine_view(), actors=self._poller.actors, unheard=unheard),
            cases=cases,
            decisions=decided.items,
            has_more=decided.next_cursor is not None,
        )

    async def _capacity_history(self, at: float) -> CapacityHistory:
        fleet = self.pipeline.fleet
        state = (dict(fleet.service_changes), fleet.tally(at).lost)
        if state != self._capacity_of or not 0 <= at - self._capacity_at < CAPACITY_S:
            since, database = at - LONGEST_S, self.store.database
            transitions, transitions_are_cut = await transitions_since(database, since, MOST_TURNS)
            silences, silences_are_cut = await story_since(database, since, SILENCE_KINDS, MOST_TURNS)
            self._capacity = CapacityHistory(transitions, silences, transitions_are_cut or silences_are_cut)
            self._capacity_of, self._capacity_at = state, at
        return self._capacity

    def _coordinator(self) -> CoordinatorFacts:
        return CoordinatorFacts(
            is_connected=self.is_current,
            muted=tuple(sorted(self._link.muted)),
            backlog=self.pipeline.backlog,
            usual_backlog=PRESSING,
            is_stuck=self.pipeline.is_stuck,
            unread=self.store.database.unread.count,
        )


def _away(records: Iterable[QuarantineRecord]) -> Iterable[tuple[str, float]]:
    """The nodes that are away, and since when each has its service state."""
    return ((record.node, record.decision.since) for record in records if record.is_away)
