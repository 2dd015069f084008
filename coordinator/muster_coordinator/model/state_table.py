"""State machines as tables, which a person can check at a glance."""

from enum import StrEnum
from typing import TypeVar

StateT = TypeVar("StateT", bound=StrEnum)
StepT = TypeVar("StepT", bound=StrEnum)

NO_CHANGE = "."


def parse_state_table(text: str, states: type[StateT], steps: type[StepT]) -> dict[tuple[StateT, StepT], StateT]:
    """By state and step, the state that follows; a cell with a dot says that the step changes nothing.

    The first line names the steps, each further line begins with a state:

            OPENED  CLOSED
        ON  .       OFF
        OFF ON      .

    ValueError when a name is not one of `states` or `steps`, or a line has a cell too many or too few.
    """
    head, *rows = (line.split() for line in text.strip().splitlines())
    return {
        (states(before), steps(step)): states(after)
        for before, *cells in rows
        for step, after in zip(head, cells, strict=True)
        if after != NO_CHANGE
    }
