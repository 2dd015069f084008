"""Decides when the agent repeats its last reply about a group.

The idea: a reply that nobody has taken is lost, because no broker keeps messages for a client that is away. There are
two cases. The coordinator was not connected when the reply went out; its presence names its connection, so another name
there shows that. Or our connection has ended since, perhaps with the broker that had the reply. In both cases the agent
repeats its last reply once, when it next hears the coordinator. It does not repeat it at each presence: behind a broker
that keeps nothing these come every ten seconds, and ten thousand agents would send a thousand messages a second for two
minutes after each sweep.

Example: the agent replies Ready while it knows the coordinator's connection `a`. Presences of `a` change nothing. The
broker is restarted, and the presence of connection `b` arrives: the agent sends Ready again.
"""

from muster.wire.messages import AnyGroupReply, CoordinatorPresence

REPEAT_REPLY_S = 120.0
"""A reply that is older than this is not repeated. Its group has missed it long since."""


class LastReply:
    """The last reply, and the connection of the coordinator that it was for."""

    def __init__(self) -> None:
        self._reply: AnyGroupReply | None = None
        self._sent_to: str | None = None
        self._coordinator = ""

    def connected(self) -> None:
        """Notes that our connection is a new one."""
        self._sent_to = None

    def sent(self, reply: AnyGroupReply) -> None:
        """Notes a reply, which may be the same again."""
        self._reply, self._sent_to = reply, self._coordinator

    def heard(self, presence: CoordinatorPresence, now: float) -> AnyGroupReply | None:
        """The reply to repeat now that the coordinator was heard; None if there is none.

        An older coordinator does not name its connection, and gets the reply at each presence.
        """
        if not presence.online:
            return None
        self._coordinator = presence.connection
        has_reply = self._reply is not None and now < self._reply.sent_at + REPEAT_REPLY_S
        was_there = bool(presence.connection) and presence.connection == self._sent_to
        return self._reply if has_reply and not was_there else None
