"""Goes through a stored log again: the same events must lead to the same decisions, byte for byte."""

from collections.abc import Iterable

from muster_coordinator.quarantine.events import Beginning, Step
from muster_coordinator.quarantine.machine import Quarantine
from muster_coordinator.quarantine.policy import Policy


def first_difference(steps: Iterable[Step], epoch: int) -> tuple[Step, Step] | None:
    """The first step that comes out otherwise now, as it was and as it is; None when all are the same.

    `steps` are the log of one leadership, which `epoch` numbers, from one of its beginnings on.
    """
    machine = None
    for step in steps:
        if isinstance(step.event, Beginning):
            machine = Quarantine(step.event.settings, Policy(step.event.rows), epoch)
        if machine is None:
            raise ValueError("a log begins with all that was known")
        again = Step(at=step.at, event=step.event, commands=tuple(machine.handle(step.event, step.at)))
        if again.model_dump_json() != step.model_dump_json():
            return step, again
    return None
