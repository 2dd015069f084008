"""What an actor is still to be told, and what of it goes first.

That a node must get no work goes before all else: while ten thousand new nodes are let in, or a thousand hear that
there is no room for them to go, a broken one still goes at once.
"""

from muster_coordinator.model.quarantine_events import DispatchTransition

AT_ONCE = 32
"""Nodes that an actor acts on side by side: with a scheduler that answers in 100 ms, 300 in a second."""


class TransitionQueue:
    """Of each node only the latest transition waits: what it overtakes would be undone as soon as it is done."""

    def __init__(self) -> None:
        self._urgent: dict[str, DispatchTransition] = {}
        self._others: dict[str, DispatchTransition] = {}
        self._under_way: set[str] = set()

    def add(self, act: DispatchTransition) -> DispatchTransition | None:
        """Lets it wait for its turn; what it has overtaken, which waits no more."""
        transition = act.record.transition
        overtaken = self._urgent.pop(transition.node, None) or self._others.pop(transition.node, None)
        waiting = self._urgent if transition.is_out else self._others
        waiting[transition.node] = act
        return overtaken

    def begin(self) -> DispatchTransition | None:
        """What is to be told now; None while enough is under way, or everything that is left to tell."""
        if len(self._under_way) >= AT_ONCE:
            return None
        for waiting in (self._urgent, self._others):
            node = next((node for node in waiting if node not in self._under_way), None)
            if node is not None:
                self._under_way.add(node)
                return waiting.pop(node)
        return None

    def end(self, node: str) -> None:
        """Notes that what was under way for this node has been told."""
        self._under_way.remove(node)
