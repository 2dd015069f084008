"""What the API serves about service states."""

from typing import Literal

from muster.model import Data, Instant, Name
from muster.transition import Text
from muster_coordinator.model.actions import Outcome
from muster_coordinator.model.case import Case
from muster_coordinator.model.quarantine_events import MassEvent


class ActorView(Data):
    """An actor as it was at the last survey: `summary` says what it acts on, `problem` what keeps it from it."""

    name: str
    summary: Text | None = None
    can_cordon: bool = False
    problem: Text | None = None


class CaseView(Case):
    """A node's case, what came of its last transition at each actor, and what must be before it is back.

    - `rounds`: so many rounds of tests it must pass in a row
    - `back_at`: a node that is CORDONED is not tested before; None where it is in another state
    - `spared`: which errors take it not out, and why
    - `needs_person`: why it comes back only when somebody releases it; empty when it comes back by itself
    """

    outcomes: dict[Name, Outcome] = {}
    rounds: int
    back_at: Instant | None = None
    spared: tuple[str, ...] = ()
    needs_person: str = ""


class DomainView(Data):
    """A failure domain of which nodes are away: how many it has, how many are away, how many may be."""

    name: str
    nodes: int
    away: int
    limit: int


class QuarantineView(Data):
    """How many nodes count, how many are away and may be, which wait to go, and which causes keep all in service."""

    mode: Literal["observe", "dry-run", "enforce"]
    nodes: int
    away: int
    limit: int
    per_minute: float
    held: tuple[Name, ...]
    frozen: tuple[MassEvent, ...]
    domains: tuple[DomainView, ...]


class BudgetView(Data):
    """The quarantine of the whole fleet, and the actors as they were at the last survey.

    `unheard` are nodes that a scheduler keeps out, as new ones or by our mark, and whose agents have not reported since
    they came: nobody tests them and lets them in.
    """

    quarantine: QuarantineView
    actors: tuple[ActorView, ...]
    unheard: tuple[str, ...] = ()
