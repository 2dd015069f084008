"""What brings a group from one state to the next: the steps, and the table of its transitions."""

from enum import StrEnum

from muster_coordinator.model.sweep_records import Ending, GroupState


class GroupStep(StrEnum):
    """The meaning of the facts about all members for the group."""

    ALL_ACCEPTED = "every member has accepted"
    ALL_READY = "every member is ready"
    ALIVE = "a member shows a sign of life"
    ALL_FINISHED = "every member has finished"
    FAULT = "a member cannot go on"
    OVERDUE = "the deadline has passed"
    CALLED_OFF = "the sweep is over"


# Not a text for `parse_state_table`: a cell has two values, the next state and how the group ended.
TRANSITIONS: dict[tuple[GroupState, GroupStep], tuple[GroupState, Ending | None]] = {
    (GroupState.FORMING, GroupStep.ALL_ACCEPTED): (GroupState.ELECTED, None),
    (GroupState.FORMING, GroupStep.FAULT): (GroupState.ENDED, Ending.NOT_FORMED),
    (GroupState.FORMING, GroupStep.OVERDUE): (GroupState.ENDED, Ending.NOT_FORMED),
    (GroupState.FORMING, GroupStep.CALLED_OFF): (GroupState.ENDED, Ending.ABORTED),
    (GroupState.ELECTED, GroupStep.ALL_READY): (GroupState.READY, None),
    (GroupState.ELECTED, GroupStep.ALL_FINISHED): (GroupState.ENDED, Ending.FINISHED),
    (GroupState.ELECTED, GroupStep.FAULT): (GroupState.ENDED, Ending.NOT_FORMED),
    (GroupState.ELECTED, GroupStep.OVERDUE): (GroupState.ENDED, Ending.NOT_FORMED),
    (GroupState.ELECTED, GroupStep.CALLED_OFF): (GroupState.ENDED, Ending.ABORTED),
    (GroupState.READY, GroupStep.ALIVE): (GroupState.RUNNING, None),
    (GroupState.READY, GroupStep.ALL_FINISHED): (GroupState.ENDED, Ending.FINISHED),
    (GroupState.READY, GroupStep.FAULT): (GroupState.ENDED, Ending.ABORTED),
    (GroupState.READY, GroupStep.OVERDUE): (GroupState.ENDED, Ending.TIMED_OUT),
    (GroupState.READY, GroupStep.CALLED_OFF): (GroupState.ENDED, Ending.ABORTED),
    (GroupState.RUNNING, GroupStep.ALL_FINISHED): (GroupState.ENDED, Ending.FINISHED),
    (GroupState.RUNNING, GroupStep.FAULT): (GroupState.ENDED, Ending.ABORTED),
    (GroupState.RUNNING, GroupStep.OVERDUE): (GroupState.ENDED, Ending.TIMED_OUT),
    (GroupState.RUNNING, GroupStep.CALLED_OFF): (GroupState.ENDED, Ending.ABORTED),
}
