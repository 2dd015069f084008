"""Nodes that are catching up: their stored faults may have cleared since.

While no coordinator runs, agents keep their runs in the outbox. So after a start the stored findings may be hours old,
and the passes that end them still on the way. A node is catching up until its evidence is complete, that is until no
run from before the start waits in its outbox. Some nodes never report that: they are gone, or their agent is over its
quota. So catching up ends for all nodes CATCH_UP_S after the first one was heard. Then the policy decides by the age of
the findings.

Example: a coordinator is stopped for an hour and starts in enforce. n1 had XID 79 before and passed since; its agent is
heard after 4 s and delivers the passes, and n1 stays in service. n2 had XID 79 too and is never heard: it is cordoned
124 s after the start if the policy counts a finding of that age.

While the broker is away, the coordinator hears no node. Then it cordons none.
"""

from collections.abc import Iterable

CATCH_UP_S = 120.0
"""An agent that lost its broker tries again within 30 s, and sends an outbox of 10,000 runs in less than a minute."""


class CatchingUp:
    """The nodes that are catching up since the coordinator's start."""

    def __init__(self) -> None:
        self._nodes: set[str] = set()
        self._until: float | None = None

    def __contains__(self, node: str) -> bool:
        return node in self._nodes

    def __len__(self) -> int:
        return len(self._nodes)

    def begin(self, nodes: Iterable[str]) -> None:
        """These nodes begin to catch up: all that are stored and have not left."""
        self._nodes = set(nodes)

    def note_heard(self, now: float) -> None:
        """Notes that some node was heard: the agents can reach the coordinator."""
        if self._until is None:
            self._until = now + CATCH_UP_S

    def note_complete(self, node: str) -> None:
        """Notes that the evidence of a node is complete, or that the node is forgotten."""
        self._nodes.discard(node)

    def pass_time(self, now: float) -> None:
        """Stops waiting for nodes that did not deliver in time."""
        if self._until is not None and now >= self._until:
            self._nodes.clear()
