"""What nodes still have to deliver: older runs may wait in their outbox, and their faults may have cleared since.

Agents keep their runs while no coordinator runs, while the broker is away, and while they are over their quota. An
agent sends the oldest runs first, so a fault arrives before the passes that end it. While a node is catching up it is
not cordoned. It has caught up once its evidence is complete: its outbox was empty, or a run arrived that is younger
than the backlog.

Some nodes never report that, so the wait is bounded:

| node | waits at most |
|---|---|
| not heard since the start, or since the broker was away | CATCH_UP_S after the first node was heard |
| heard | CATCH_UP_S after its runs last came nearer to the present |
| heard, and its runs come nearer and nearer | LONGEST_CATCH_UP_S |

Then the policy decides by the age of the findings, and the node counts as caught up for LONGEST_CATCH_UP_S.

Example: a coordinator is stopped for six hours and starts in enforce. n1 had XID 79 before and passed since; it
delivers 10,000 runs in seven minutes, the passes last, and stays in service. n2 had XID 79 too and is never heard: it
is cordoned 124 s after the start if the policy counts a finding of that age. While the broker is away, no node is heard
and none is cordoned.

All times move with a clock that is set back, so the waits stay as long as they are.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

CATCH_UP_S = 120.0
"""An agent that lost its broker tries again within 30 s, and repeats a report that was not acknowledged within 60 s."""

LONGEST_CATCH_UP_S = 3600.0
"""The 10,000 runs of a full outbox take 7 minutes, if they are large an hour."""


@dataclass(slots=True)
class _Backlog:
    """What a node still has to deliver.

    `heard_at` is when the node was heard first since it has one, `advanced_at` when its runs last came nearer to the
    present. Then the youngest one was `behind_s` old.
    """

    heard_at: float | None = None
    advanced_at: float = 0.0
    behind_s: float = math.inf


class Backlogs:
    """The backlogs of all nodes, and the nodes that are `catching_up`. `version` grows with every change of these."""

    def __init__(self) -> None:
        self.version = 0
        self.catching_up: set[str] = set()
        self._backlogs: dict[str, _Backlog] = {}  # also of nodes that took too long
        self._reached_at: float | None = None  # when the first node was heard
        self._look_at = math.inf  # no wait is over before this time
        self._now = 0.0

    def begin(self, nodes: Iterable[str]) -> None:
        """All these nodes begin to catch up, and none was heard yet: after a start, or after the broker was away."""
        self._reached_at, self._look_at = None, math.inf
        self._backlogs = {node: _Backlog() for node in nodes}
        self.catching_up = set(self._backlogs)
        self.version += 1

    def note_heard(self, node: str, now: float) -> None:
        """Notes that a node was heard, for the first time since the start or again."""
        if self._reached_at is None:
            self._reached_at, self._look_at = now, min(self._look_at, now + CATCH_UP_S)
        backlog = self._backlogs.get(node)
        if backlog is not None and backlog.heard_at is None:
            self._await(node, now)

    def note_incomplete(self, node: str, now: float) -> None:
        """Notes that older runs may wait in the outbox of a node. One that took too long is not waited for at once."""
        backlog = self._backlogs.get(node)
        if backlog is None or (backlog.heard_at is not None and now - backlog.heard_at >= 2 * LONGEST_CATCH_UP_S):
            self._await(node, now)

    def note_delivered(self, node: str, through: float, now: float) -> None:
        """Notes that a node delivered runs; the youngest began at `through`."""
        backlog = self._backlogs.get(node)
        if backlog is not None and now - through < backlog.behind_s:
            backlog.advanced_at, backlog.behind_s = now, now - through

    def note_complete(self, node: str) -> None:
        """Notes that the evidence of a node is complete, or that the node is forgotten."""
        self._backlogs.pop(node, None)
        self._drop({node} & self.catching_up)

    def pass_time(self, now: float) -> None:
        """Stops waiting for nodes that did not deliver in time."""
        self._move_back(self._now - now)
        self._now = now
        if now < self._look_at:
            return
        ends = {node: self._end_of(self._backlogs[node]) for node in self.catching_up}
        self._drop({node for node, end in ends.items() if end <= now})
        self._look_at = min((end for end in ends.values() if end > now), default=math.inf)

    def _await(self, node: str, now: float) -> None:
        self._backlogs[node] = _Backlog(heard_at=now, advanced_at=now)
        self._look_at = min(self._look_at, now + CATCH_UP_S)
        self.catching_up.add(node)
        self.version += 1

    def _drop(self, nodes: set[str]) -> None:
        if nodes:
            self.catching_up -= nodes
            self.version += 1

    def _end_of(self, backlog: _Backlog) -> float:
        """When the wait for a node is over, unless it delivers more before."""
        if backlog.heard_at is None:
            return math.inf if self._reached_at is None else self._reached_at + CATCH_UP_S
        return min(backlog.advanced_at + CATCH_UP_S, backlog.heard_at + LONGEST_CATCH_UP_S)

    def _move_back(self, by_s: float) -> None:
        """Moves all times with a clock that was set back."""
        if by_s <= 0:
            return
        self._look_at -= by_s
        if self._reached_at is not None:
            self._reached_at -= by_s
        for backlog in self._backlogs.values():
            backlog.advanced_at -= by_s
            if backlog.heard_at is not None:
                backlog.heard_at -= by_s
