"""What the API serves about service states."""

from muster.model import Data, Name
from muster_coordinator.quarantine.actions import Outcome
from muster_coordinator.quarantine.case import Case
from muster_coordinator.quarantine.view import QuarantineView
from muster_coordinator.surveying import ActorView


class CaseView(Case):
    """A node's case, and what came of its last transition at each actor."""

    outcomes: dict[Name, Outcome] = {}


class BudgetView(Data):
    """The quarantine of the whole fleet, and the actors as they were at the last survey."""

    quarantine: QuarantineView
    actors: tuple[ActorView, ...]
