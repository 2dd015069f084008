"""The first fields of a report are what decoding all of it gives, and never come from inside a text."""

from hypothesis import given
from hypothesis import strategies as st

from muster.model import Json, Run, Verdict
from muster.wire.codec import encode
from muster.wire.messages import Report
from muster.wire.report_head import ReportHead, report_head

names = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,252}\Z")


def run(node: str, seq: int, summary: str = "") -> Run:
    facts: Json = {"text": summary}
    return Run(
        id="r", node=node, check="gemm", verdict=Verdict.PASS, facts=facts, started_at=1.0, duration_s=1.0, seq=seq
    )


@given(node=names, id=names, stream=names, after=st.integers(0, (1 << 53) - 3), urgent=st.booleans())
def test_it_is_what_the_report_says(node: str, id: str, stream: str, after: int, urgent: bool) -> None:
    """However long the names before it are."""
    runs = (run(node, after + 2),)
    report = Report(
        id=id, sent_at=1.0, node=node, stream=stream, after=after, through=after + 2, urgent=urgent, runs=runs
    )
    assert report_head(encode(report)) == ReportHead(stream, after, after + 2, urgent)


def test_an_older_agent_sends_none() -> None:
    """Its reports are decoded."""
    report = Report(sent_at=1.0, node="n1", stream="s", after=0, runs=(run("n1", 1),))
    assert report_head(encode(report)) is None


def test_a_text_that_looks_like_it_is_none() -> None:
    """A quotation mark inside a text is escaped."""
    text = '"stream":"s","after":0,"through":9,'
    report = Report(sent_at=1.0, node="n1", stream="s", after=0, runs=(run("n1", 1, text),))
    assert report_head(encode(report)) is None


@given(st.binary(max_size=2000))
def test_garbage_is_none_or_a_head(payload: bytes) -> None:
    """It never raises."""
    assert report_head(payload) is None or b'"through":' in payload
