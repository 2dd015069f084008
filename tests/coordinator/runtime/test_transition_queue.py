"""What an actor is told next."""

from muster.model import ServiceState
from muster.transition import Transition
from muster_coordinator.model.quarantine_events import DispatchTransition
from muster_coordinator.model.transitions import TransitionRecord
from muster_coordinator.runtime.transition_queue import AT_ONCE, TransitionQueue

ACCEPTING, IN_SERVICE, HELD, CORDONED = (
    ServiceState.ACCEPTING,
    ServiceState.IN_SERVICE,
    ServiceState.HELD,
    ServiceState.CORDONED,
)


def act(node, before, after):
    transition = Transition(id=f"{node}-{after}", node=node, before=before, after=after, reason="so", at=1.0)
    return DispatchTransition(record=TransitionRecord(transition=transition))


def begun(queue):
    """The transitions that may be told now."""
    return [act.record.transition.id for act in iter(queue.begin, None)]


def test_who_must_get_no_work_goes_first():
    """Before those that are uncordoned and those that hear only news, however long these have waited."""
    queue = TransitionQueue()
    queue.add(act("new", ACCEPTING, IN_SERVICE))
    queue.add(act("told", IN_SERVICE, HELD))
    queue.add(act("bad", IN_SERVICE, CORDONED))
    queue.add(act("worse", HELD, CORDONED))
    assert begun(queue) == ["bad-CORDONED", "worse-CORDONED", "new-IN_SERVICE", "told-HELD"]


def test_of_what_waits_for_a_node_only_the_latest_is_told():
    """The one that it overtakes is given back, to be told of as such."""
    queue, held = TransitionQueue(), act("n1", IN_SERVICE, HELD)
    assert queue.add(held) is None
    assert queue.add(act("n1", HELD, CORDONED)) is held
    back = act("n1", CORDONED, IN_SERVICE)
    overtaken = queue.add(back)
    assert overtaken is not None
    assert overtaken.record.transition.after is CORDONED
    assert begun(queue) == ["n1-IN_SERVICE"]


def test_a_node_s_next_transition_waits_for_the_one_under_way():
    """That cannot be overtaken any more, and nothing is told beside it."""
    queue = TransitionQueue()
    queue.add(act("n1", IN_SERVICE, HELD))
    assert begun(queue) == ["n1-HELD"]
    assert queue.add(act("n1", HELD, CORDONED)) is None
    queue.add(act("n2", IN_SERVICE, HELD))
    assert begun(queue) == ["n2-HELD"]
    queue.end("n1")
    assert begun(queue) == ["n1-CORDONED"]


def test_only_so_many_are_under_way_at_once():
    """As soon as one has been told, the next may be."""
    queue = TransitionQueue()
    for number in range(AT_ONCE + 2):
        queue.add(act(f"n{number}", IN_SERVICE, HELD))
    assert len(begun(queue)) == AT_ONCE
    queue.end("n3")
    assert begun(queue) == [f"n{AT_ONCE}-HELD"]
