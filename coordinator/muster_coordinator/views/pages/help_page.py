"""What the page `/help` says about the words of the other pages."""

from collections.abc import Mapping

from muster.model import ServiceState
from muster_coordinator.views.pages.page_row import RowCondition

CONDITIONS: Mapping[RowCondition, str] = {
    RowCondition.FAILED: "A fault is confirmed.",
    RowCondition.SUSPECT: "A check has failed once; a second failure confirms the fault.",
    RowCondition.SILENT: "The agent has stopped to report. Check the node, its network and its agent.",
    RowCondition.DEGRADED: "It works, but something is worse than it should be.",
    RowCondition.UNKNOWN: "There is no evidence yet, or the coordinator hears no node now.",
    RowCondition.OUT: "It is healthy, and muster has taken it out of service.",
    RowCondition.NEW: "It is healthy, and not accepted yet.",
    RowCondition.HEALTHY: "Every check that has reported passes.",
}
"""What each condition means, the worst first."""

SERVICES: Mapping[ServiceState, str] = {
    ServiceState.ACCEPTING: "It is new: it gets work when each check has reported and it is healthy.",
    ServiceState.IN_SERVICE: "It gets work.",
    ServiceState.HELD: "It should be drained and is not: the budget, a limit or a freeze keeps it in service.",
    ServiceState.CORDONED: "It is drained: it gets no new work.",
    ServiceState.PROBATION: "It is drained, and its tests run. If they pass, it returns to service.",
}
"""What muster has decided about a node in each service state."""
