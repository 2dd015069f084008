"""What becomes of decisions that were made in another mode."""

from muster.model import ServiceState
from muster_coordinator.model.case import Case

PRETENDED = frozenset({ServiceState.HELD, ServiceState.CORDONED, ServiceState.PROBATION})
"""The states of a dry run that count no more when it is over."""


def state_in_mode(case: Case, mode: str) -> ServiceState:
    """The service state of a case in the mode that holds now.

    What a dry run has decided counts no more when it is over: a node that actors were told in earnest to keep out is
    still out, all others are in service. Who only observes keeps nobody waiting for room.
    """
    if mode == "observe" and case.state is ServiceState.HELD:
        return ServiceState.IN_SERVICE
    if not case.dry_run or mode == "dry-run":
        return case.state
    if case.closed_as is not None:
        return ServiceState.ACCEPTING if case.closed_as is ServiceState.ACCEPTING else ServiceState.CORDONED
    return ServiceState.IN_SERVICE if case.state in PRETENDED else case.state
