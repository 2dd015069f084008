"""Compressed messages come back as they were; everything else is refused, quickly and in little memory."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cases import cases

from muster.errors import RemoteError
from muster.wire import codec
from muster.wire.codec import MAX_MESSAGE_BYTES, decode, encode, encode_short
from muster.wire.deflate import DEFLATED, beginning, deflated, inflated
from muster.wire.messages import Ack, Presence, Report
from muster.wire.report_head import ReportHead, report_head


@given(st.binary(max_size=4096))
def test_a_message_comes_back_as_it_was(message: bytes) -> None:
    """Whatever it holds."""
    packed = deflated(message)
    assert inflated(packed, len(message)) == message
    assert beginning(packed, 100) == message[:100]


def test_json_stays_as_it_is() -> None:
    """So a peer may send either."""
    assert inflated(b'{"schema":1}', 1) == b'{"schema":1}'
    assert beginning(b'{"schema":1}', 4) == b'{"sc'


def test_every_message_may_come_compressed() -> None:
    """Decoding does not need to know."""
    ack = Ack(sent_at=1.0, stream="s", stored_through=3, hold_s=2.5)
    assert decode(deflated(encode_short(ack)), codec.ACK) == ack


def report_of(**fields) -> bytes:
    return codec.encode_report(sent_at=1.0, node="n", stream="s", after=1, urgent=False, **fields)


BAD = {
    "a bomb": (deflated(b" " * (4 * MAX_MESSAGE_BYTES)), "oversized"),
    "no end": (deflated(b'{"schema":1}')[:-1], "malformed"),
    "bytes after its end": (deflated(b"{}") + b"x", "malformed"),
    "not deflate": (DEFLATED + b"\xff\xff\xff\xff", "malformed"),
    "another dictionary": (DEFLATED + zlib.compress(b"{}", wbits=-15), "malformed"),
    "nothing": (DEFLATED, "malformed"),
}


@cases("what", BAD)
def test_what_is_not_one_compressed_message_is_refused(what) -> None:
    """The bomb is as small as one of four megabytes can be, and is given up at the limit."""
    payload, kind = BAD[what]
    with pytest.raises(RemoteError) as refused:
        decode(payload, codec.REPORT)
    assert refused.value.kind == kind
    report_head(payload)  # raises nothing


def test_the_first_fields_of_a_compressed_report_can_be_read() -> None:
    """Without inflating the rest, which may be damaged."""
    payload = codec.encode_report(
        sent_at=1.0, node="n", stream="s", after=1, through=2, urgent=False, runs=["x" * 100_000]
    )
    assert report_head(deflated(payload)[:1000]) == ReportHead("s", 1, 2)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (codec.ACK, Ack(sent_at=1.0, stream="s", stored_through=3, hold_s=2.5, gap=True)),
        (codec.PRESENCE, Presence(sent_at=1.0, node="n", online=True)),
        (codec.PRESENCE, Presence(sent_at=1.0, node="n", online=False, goodbye=True, outbox=3, dropped={"nvml": 2})),
    ],
)
def test_a_short_message_says_the_same(kind, message) -> None:
    """Fields that have their default value are left out; agents and coordinators since 0.1 fill them in."""
    short = encode_short(message)
    assert decode(short, kind) == message
    assert len(short) <= len(encode(message))


def test_a_report_with_repeats_is_as_its_model() -> None:
    """A coordinator that does not know repeats ignores the field, so it must not get any."""
    repeat = {"seq": 4, "like": 2, "age_ms": 15, "duration_s": 0.5, "metrics": [1, None, 0.25]}
    payload = codec.encode_report(
        sent_at=1.0, node="n", stream="s", after=1, through=4, urgent=False, runs=[], repeats=[repeat]
    )
    report = decode(payload, codec.REPORT)
    assert isinstance(report, Report)
    assert [each.seq for each in report.in_order] == [4]
    assert b"repeats" not in codec.encode_report(
        sent_at=1.0, node="n", stream="s", after=1, through=2, urgent=False, runs=["{}"]
    )
