"""Replies that fit into a message: a broker hangs up on whoever sends a larger one, again and again.

What one rank found is bounded, but a node may have many ranks.
"""

from muster.model import RankResult
from muster.wire.codec import MAX_MESSAGE_BYTES, encode
from muster.wire.messages import AnyGroupReply, Finished
from muster_agent.findings import oversized

MOST_BYTES = MAX_MESSAGE_BYTES * 3 // 4
"""The rest is for the topic, and for a broker that counts in another way."""

_MOST_FINDINGS = 64
"""Of a rank; those of sixteen ranks fit."""


def fitting(reply: AnyGroupReply) -> AnyGroupReply:
    """The reply, shortened where it is too large: of ranks only their verdicts and the start of their findings."""
    if isinstance(reply, Finished) and (size := len(encode(reply))) > MOST_BYTES:
        return reply.model_copy(update={"ranks": tuple(_short(rank, size) for rank in reply.ranks)})
    return reply


def _short(rank: RankResult, size: int) -> RankResult:
    kept = oversized(rank.findings[:_MOST_FINDINGS], size)
    return rank.model_copy(update={"metrics": {}, "facts": {}, "findings": kept})
