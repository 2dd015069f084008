"""Goes through a stored log again: the same events must lead to the same decisions, byte for byte."""

from collections.abc import Iterable

from muster_coordinator.model.quarantine_events import Beginning, Renewed, Step, step_of
from muster_coordinator.quarantine.machine import Quarantine
from muster_coordinator.quarantine.policy import Policy


def first_difference(steps: Iterable[Step], epoch: int) -> tuple[Step, Step] | None:
    """The first step that comes out otherwise now, as it was and as it is; None when all are the same.

    `steps` are the log of one leadership, which `epoch` numbers, from one of its beginnings on.
    """
    machine = None
    for step in steps:
        event = step.event
        if isinstance(event, Renewed) and machine is not None:
            event = machine.renewal()  # which also tells whether all cases are the same by now
        if isinstance(event, Beginning):
            machine = Quarantine(event.settings, Policy(event.rows), epoch)
        if machine is None:
            raise ValueError("a log begins with all that was known")
        again = step_of(event, machine.handle(event, step.at), step.at)
        if again.model_dump_json() != step.model_dump_json():
            return step, again
    return None
