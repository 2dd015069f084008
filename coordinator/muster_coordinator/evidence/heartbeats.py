"""The time when each node was heard last, and the nodes that are lost.

The idea: nodes are kept in the order in which they were heard, the oldest first. The lost nodes are at the front, and a
tick looks only at these.

| what shows it | a node is lost |
|---|---|
| silence | when nothing was heard from it for three heartbeats |
| its last will | WILL_BELIEVED_AFTER_S later, unless it is heard, or we lose our own connection to the broker |
| nothing: we cannot hear (no connection to the broker, or a start) | never |
| nothing: we are overloaded, and what we hear is over LATE_S old | never |
| silence since we hear again | RECONNECTED_WITHIN_S and three heartbeats after that |
| silence since we were overloaded | three heartbeats after that |
| silence while we stood still, or our clock was set forward | three heartbeats after that |

A last will says only that the broker lost the connection of a node. A broker that stops says it of every node, and then
drops us too. Only the will of a node that was heard since we connected counts: another one may be about the connection
that the node had before, and the node is on its way back. A message that the broker had kept does not count as heard.

Example: with a heartbeat of 10 s, a node is lost when nothing was heard from it for more than 30 s. The broker restarts
and we hear again at 1,000: nobody is lost before 1,090. n1 is heard at 1,012 and its will comes at 1,020: it is lost at
1,025. The host of the coordinator is suspended from 2,000 to 2,600: a node that is not heard by 2,630 is lost then.

Noting a heartbeat or a will takes constant time, a tick time in proportion to the lost nodes and the recent wills.
"""

import math
from collections import OrderedDict
from typing import NamedTuple

from muster.reconnect import RECONNECTED_WITHIN_S

LOST_AFTER_HEARTBEATS = 3
"""Three heartbeats: one may be lost on the way and one may be late."""

WILL_BELIEVED_AFTER_S = 5.0
"""Mosquitto 2.0.11 with 8,000 connected nodes sends all wills when it gets SIGTERM, and drops us 0.06 s after the
first. In between it writes its database if it has one; with 83 MB it drops us after 0.25 s, and a disk of 20 MB/s would
take 4 s. An agent that has lost only its connection has tried three times by then (0.5, 1 and 2 s, `mqtt.pause_s`).
"""


LATE_S = 5.0
"""A message this old is late. The wills and heartbeats that follow it may be any time away, and the broker drops
messages that do not fit into its queue.
"""


class Will(NamedTuple):
    """The last will of a node that was not heard since: when it came, and the id of the message."""

    node: str
    came_at: float
    cause: str


class Heartbeats:
    """The nodes that send a heartbeat every `every_s` seconds. A node that is not among them is lost."""

    def __init__(self, every_s: float) -> None:
        self._lost_after_s = LOST_AFTER_HEARTBEATS * every_s
        self._heard: OrderedDict[str, float] = OrderedDict()  # the node that was heard longest ago comes first
        self._wills: dict[str, Will] = {}  # the oldest first
        self._present: set[str] = set()  # heard since we connected, and since we were late
        self._is_deaf = False
        self._hears_since = -math.inf
        self._was_late_at = -math.inf
        self._looked_at = math.inf

    def note(self, node: str, now: float, *, kept: bool = False) -> None:
        """Notes that the node was heard at `now`, or that the broker had `kept` what it said before."""
        if not kept:
            self._present.add(node)
        self._heard[node] = now
        self._heard.move_to_end(node)
        self._wills.pop(node, None)

    def note_will(self, node: str, cause: str, now: float) -> bool:
        """Notes the last will of a node. Returns whether it will be believed if nothing else is heard."""
        if node not in self._present:
            return False
        self._wills.setdefault(node, Will(node, now, cause))
        return True

    def stop_hearing(self) -> None:
        """Notes that no node can be heard: there is no connection to the broker."""
        self._is_deaf = True
        self._doubt_all()

    def hear_again(self, now: float) -> None:
        """Notes that from `now` on messages arrive as nodes send them."""
        self._is_deaf, self._hears_since = False, now

    def note_lag(self, lag_s: float, now: float) -> None:
        """Notes how old the messages are that arrive now."""
        if lag_s >= LATE_S:
            self._was_late_at = now
            self._doubt_all()

    def look(self, now: float) -> None:
        """Notes that we look for silent nodes now. If the last time is long ago, messages wait that came meanwhile."""
        self.note_lag(now - self._looked_at, now)
        self._looked_at = now

    def give_up(self, node: str) -> None:
        """Removes a node that is lost."""
        del self._heard[node]
        self._present.discard(node)
        self._wills.pop(node, None)

    def overdue(self, now: float) -> list[str]:
        """The nodes that are lost by their silence and were not given up yet."""
        silent = []
        for node in self._heard:
            if not self.is_lost(node, now):
                break
            silent.append(node)
        return silent

    def take_believed(self, now: float) -> list[Will]:
        """The wills that are to be believed now. Each is returned once."""
        believed = []
        for will in self._wills.values():
            if now - will.came_at < WILL_BELIEVED_AFTER_S:
                break
            believed.append(will)
        for will in believed:
            del self._wills[will.node]
        return believed

    def is_lost(self, node: str, now: float) -> bool:
        """Whether a node was given up, or nothing has been heard of it for three heartbeats although it could be."""
        heard = self._heard.get(node)
        if heard is None:
            return True
        silent_since = max(heard, self._hears_since + RECONNECTED_WITHIN_S, self._was_late_at)
        return not self._is_deaf and now - silent_since > self._lost_after_s

    def _doubt_all(self) -> None:
        """Forgets the wills: each may be about a connection that its node has no longer."""
        self._wills.clear()
        self._present.clear()
