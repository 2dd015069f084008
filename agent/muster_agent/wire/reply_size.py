"""Shortens replies that do not fit into a message.

A broker disconnects a client that sends a message that is too large. The agent would reconnect, send it again and be
disconnected again. The findings of one rank are bounded, but a node may have many ranks.
"""

from muster.model import RankResult
from muster.wire.codec import MAX_MESSAGE_BYTES, encode
from muster.wire.messages import AnyGroupReply, Finished
from muster_agent.decide import findings

MOST_BYTES = MAX_MESSAGE_BYTES * 3 // 4
"""The rest is for the topic, and for brokers that count differently."""

_MOST_FINDINGS = 64
"""Maximum number of findings of each rank. For sixteen ranks with ASCII texts they fit into a message."""


def shorten_to_fit(reply: AnyGroupReply) -> AnyGroupReply:
    """Returns the reply. If it is too large, only the verdicts of its ranks and the start of some findings remain."""
    if not isinstance(reply, Finished) or (size := len(encode(reply))) <= MOST_BYTES:
        return reply
    kept = _MOST_FINDINGS
    while kept and len(encode(_shorten(reply, kept, size))) > MOST_BYTES:
        kept //= 2
    return _shorten(reply, kept, size)


def _shorten(reply: Finished, kept: int, size: int) -> Finished:
    return reply.model_copy(update={"ranks": tuple(_shorten_rank(rank, kept, size) for rank in reply.ranks)})


def _shorten_rank(rank: RankResult, kept: int, size: int) -> RankResult:
    found = findings.shorten(rank.findings[:kept], size)
    return rank.model_copy(update={"metrics": {}, "facts": {}, "findings": found})
