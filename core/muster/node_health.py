"""The health of nodes for plugins: evidence alone, independent of decisions about service."""

from muster.model import Action, Data, Health, Instant, Name, Severity
from muster.transition import Cause


class HealthFinding(Cause):
    """A finding that stands against a node, with its severity and the recommended action."""

    severity: Severity
    action: Action = Action.NONE


class NodeHealthReport(Data):
    """The health of a node at the time `at`.

    `health` is the result of its checks. `is_silent` means that its agent has stopped reporting. Then `health` is
    UNKNOWN, or the fault that was found before. `findings` are those that stand against it, the worst first. `reasons`
    say in sentences why it is not healthy, for example which checks have not reported yet.
    """

    node: Name
    at: Instant
    health: Health
    is_silent: bool = False
    findings: tuple[HealthFinding, ...] = ()
    reasons: tuple[str, ...] = ()
