"""What the page of the fleet is made from: the state of the coordinator at one moment."""

from dataclasses import dataclass, field

from muster_coordinator.model.nodes import FleetView, StoryEntry
from muster_coordinator.model.quarantine_events import Asked
from muster_coordinator.model.quarantine_views import ActorView, CaseView, QuarantineView
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.views.pages.lost_capacity import CapacityHistory
from muster_coordinator.views.pages.page_row import PageRow

RECENT_S = 3600.0
"""What changed in this time is on the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorFacts:
    """How the coordinator itself is.

    `is_connected`: it receives the messages of the nodes. `muted` are nodes that flood the broker. `backlog` is what
    waits to be stored, which is usual up to `usual_backlog`; `is_stuck`: storing hangs. `unread` are damaged rows of
    the database.
    """

    is_connected: bool = True
    muted: tuple[str, ...] = ()
    backlog: int = 0
    usual_backlog: int = 0
    is_stuck: bool = False
    unread: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetFacts:
    """The fleet at the time `at`.

    `held` are the cases of the first nodes that should be drained and are not. `sweeps` are the latest ones, without
    their groups. `story` has the entries since RECENT_S, the latest first, and `asked` what people requested since
    then; the oldest are left out if `is_cut`.
    """

    at: float
    fleet: FleetView
    rows: tuple[PageRow, ...]
    quarantine: QuarantineView
    coordinator: CoordinatorFacts = field(default_factory=CoordinatorFacts)
    actors: tuple[ActorView, ...] = ()
    unheard: tuple[str, ...] = ()
    held: tuple[CaseView, ...] = ()
    sweeps: tuple[SweepRecord, ...] = ()
    story: tuple[StoryEntry, ...] = ()
    asked: tuple[Asked, ...] = ()
    is_cut: bool = False
    capacity: CapacityHistory = field(default_factory=CapacityHistory)
