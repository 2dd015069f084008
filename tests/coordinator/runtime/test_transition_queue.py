"""What an actor is told next."""

from muster.model import ServiceState
from muster.transition import Transition
from muster_coordinator.model.actions import Action
from muster_coordinator.model.quarantine_events import Act
from muster_coordinator.runtime.transition_queue import AT_ONCE, Agenda

ACCEPTING, IN_SERVICE, HELD, CORDONED = (
    ServiceState.ACCEPTING,
    ServiceState.IN_SERVICE,
    ServiceState.HELD,
    ServiceState.CORDONED,
)


def act(node, before, after):
    transition = Transition(id=f"{node}-{after}", node=node, before=before, after=after, reason="so", at=1.0)
    return Act(action=Action(transition=transition))


def begun(agenda):
    """The transitions that may be told now."""
    return [act.action.transition.id for act in iter(agenda.begin, None)]


def test_who_must_get_no_work_goes_first():
    """Before those that are let in and those that hear only news, however long these have waited."""
    agenda = Agenda()
    agenda.add(act("new", ACCEPTING, IN_SERVICE))
    agenda.add(act("told", IN_SERVICE, HELD))
    agenda.add(act("bad", IN_SERVICE, CORDONED))
    agenda.add(act("worse", HELD, CORDONED))
    assert begun(agenda) == ["bad-CORDONED", "worse-CORDONED", "new-IN_SERVICE", "told-HELD"]


def test_of_what_waits_for_a_node_only_the_latest_is_told():
    """The one that it overtakes is given back, to be told of as such."""
    agenda, held = Agenda(), act("n1", IN_SERVICE, HELD)
    assert agenda.add(held) is None
    assert agenda.add(act("n1", HELD, CORDONED)) is held
    back = act("n1", CORDONED, IN_SERVICE)
    overtaken = agenda.add(back)
    assert overtaken is not None
    assert overtaken.action.transition.after is CORDONED
    assert begun(agenda) == ["n1-IN_SERVICE"]


def test_a_node_s_next_transition_waits_for_the_one_under_way():
    """That cannot be overtaken any more, and nothing is told beside it."""
    agenda = Agenda()
    agenda.add(act("n1", IN_SERVICE, HELD))
    assert begun(agenda) == ["n1-HELD"]
    assert agenda.add(act("n1", HELD, CORDONED)) is None
    agenda.add(act("n2", IN_SERVICE, HELD))
    assert begun(agenda) == ["n2-HELD"]
    agenda.end("n1")
    assert begun(agenda) == ["n1-CORDONED"]


def test_only_so_many_are_under_way_at_once():
    """As soon as one has been told, the next may be."""
    agenda = Agenda()
    for number in range(AT_ONCE + 2):
        agenda.add(act(f"n{number}", IN_SERVICE, HELD))
    assert len(begun(agenda)) == AT_ONCE
    agenda.end("n3")
    assert begun(agenda) == [f"n{AT_ONCE}-HELD"]
