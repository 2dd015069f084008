"""Replies that fit into a message, whatever ranks found and requests said."""

from typing import Any

import pytest

from muster.model import Finding, RankResult, Severity, Verdict
from muster.wire.codec import MAX_MESSAGE_BYTES, encode
from muster.wire.messages import Declined, Finished, Ready
from muster_agent.reply_size import fitting

HEADER: dict[str, Any] = {"sent_at": 1.0, "node": "n", "group": "g"}


def finished(count: int, **fields: Any) -> Finished:
    """What `count` ranks found."""
    ranks = (RankResult(rank=rank, verdict=Verdict.FAIL, duration_s=1.0, **fields) for rank in range(count))
    return Finished(**HEADER, ranks=tuple(ranks))


def test_what_fits_stays_as_it_is():
    """Also the largest that a node usually says."""
    for reply in (
        Ready(**HEADER),
        Declined(**HEADER, reason="busy", detail="x"),
        finished(16, facts={"x": "x" * 9000}),
    ):
        assert fitting(reply) is reply


@pytest.mark.parametrize(
    "fields",
    [
        {"facts": {"told": "x" * 200_000}},
        {"metrics": {f"x{number}": [1e-9 / 3] * 1000 for number in range(100)}},
        {
            "findings": (
                Finding(code="c" * 200, summary="s" * 4000, severity=Severity.ERROR, evidence={"e": "e" * 5000}),
            )
            * 256
        },
    ],
    ids=["facts", "metrics", "findings"],
)
def test_ranks_that_found_too_much_tell_their_verdicts(fields):
    """And that something is missing, with the start of their findings."""
    short = fitting(finished(16, **fields))
    assert isinstance(short, Finished)
    assert len(encode(short)) < MAX_MESSAGE_BYTES
    assert {(rank.verdict, rank.findings[0].code) for rank in short.ranks} == {(Verdict.FAIL, "run.oversized")}
