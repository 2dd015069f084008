"""What the API serves about service states."""

from muster.model import Data
from muster_coordinator.quarantine.view import QuarantineView
from muster_coordinator.surveying import ActorView


class BudgetView(Data):
    """The quarantine of the whole fleet, and the actors as they were at the last survey.

    `unheard` are nodes that a scheduler keeps out, as new ones or by our mark, and whose agents have not reported since
    they came: nobody tests them and lets them in.
    """

    quarantine: QuarantineView
    actors: tuple[ActorView, ...]
    unheard: tuple[str, ...] = ()
