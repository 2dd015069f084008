"""Replies fit into a message, however much the ranks of a node found."""

from typing import Any

import pytest

from muster.model import MOST_DEVICES, MOST_NAMES, Finding, RankResult, Severity, Verdict
from muster.wire.codec import MAX_MESSAGE_BYTES, encode
from muster.wire.messages import Declined, Finished, Ready
from muster_agent.wire.reply_size import shorten_to_fit

HEADER: dict[str, Any] = {"sent_at": 1.0, "node": "n", "group": "g"}


def finished(count: int, **fields: Any) -> Finished:
    """The results of `count` ranks with the same fields."""
    ranks = (RankResult(rank=rank, verdict=Verdict.FAIL, duration_s=1.0, **fields) for rank in range(count))
    return Finished(**HEADER, ranks=tuple(ranks))


def test_a_reply_that_fits_is_not_changed():
    """Neither is the largest reply that a node usually sends."""
    for reply in (
        Ready(**HEADER),
        Declined(**HEADER, reason="busy", detail="x"),
        finished(16, facts={"x": "x" * 9000}),
    ):
        assert shorten_to_fit(reply) is reply


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
def test_ranks_that_found_too_much_keep_their_verdicts(fields):
    """The first finding says that something is missing; the start of the others follows."""
    short = shorten_to_fit(finished(16, **fields))
    assert isinstance(short, Finished)
    assert len(encode(short)) < MAX_MESSAGE_BYTES
    assert {(rank.verdict, rank.findings[0].code) for rank in short.ranks} == {(Verdict.FAIL, "run.oversized")}


@pytest.mark.parametrize(("ranks", "character"), [(16, "\N{GRINNING FACE}"), (MOST_DEVICES, "x"), (MOST_DEVICES, "ä")])
def test_any_number_of_ranks_fits(ranks, character):
    """With the most ranks and findings there can be, and characters that take several bytes."""
    found = Finding(code="c" * 200, summary=character * 4000, severity=Severity.ERROR)
    short = shorten_to_fit(finished(ranks, findings=(found,) * MOST_NAMES))
    assert isinstance(short, Finished)
    assert len(encode(short)) < MAX_MESSAGE_BYTES
    assert len(short.ranks) == ranks
    assert {rank.findings[0].code for rank in short.ranks} == {"run.oversized"}
