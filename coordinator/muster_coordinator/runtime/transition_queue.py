"""The transitions that wait for one actor, in the order in which it gets them.

Drains come first. While ten thousand new nodes are accepted, or a thousand nodes wait for the budget, a broken node is
still drained at once.
"""

from muster_coordinator.model.quarantine_events import DispatchTransition

AT_ONCE = 32
"""Maximum number of nodes for which an actor is called at the same time: 300 a second, if the scheduler answers in 100
ms.
"""


class TransitionQueue:
    """The queue of one actor. For each node, only the latest transition waits.

    The actor would have to undo an earlier one at once.
    """

    def __init__(self) -> None:
        self._urgent: dict[str, DispatchTransition] = {}
        self._others: dict[str, DispatchTransition] = {}
        self._under_way: set[str] = set()

    def add(self, act: DispatchTransition) -> DispatchTransition | None:
        """Adds a transition; returns the waiting one that it replaces, if any."""
        transition = act.record.transition
        overtaken = self._urgent.pop(transition.node, None) or self._others.pop(transition.node, None)
        waiting = self._urgent if transition.is_out else self._others
        waiting[transition.node] = act
        return overtaken

    def begin(self) -> DispatchTransition | None:
        """The next transition for the actor; None if enough calls are under way, or none is left."""
        if len(self._under_way) >= AT_ONCE:
            return None
        for waiting in (self._urgent, self._others):
            node = next((node for node in waiting if node not in self._under_way), None)
            if node is not None:
                self._under_way.add(node)
                return waiting.pop(node)
        return None

    def end(self, node: str) -> None:
        """Notes that the call for this node has ended."""
        self._under_way.remove(node)
