"""The health of nodes for plugins: evidence alone, independent of decisions about service."""

from muster.model import Action, Data, Health, Instant, Name, Severity
from muster.transition import Cause


class HealthFinding(Cause):
    """A finding that stands against a node, with how bad it is and what should be done about it."""

    severity: Severity
    action: Action = Action.NONE


class NodeHealthReport(Data):
    """How a node was at the instant `at`.

    `health` is what its checks say. `is_silent` says that its agent has stopped reporting: then nobody knows how the
    node is. `findings` are those that stand against it, the worst first.
    """

    node: Name
    at: Instant
    health: Health
    is_silent: bool = False
    findings: tuple[HealthFinding, ...] = ()
