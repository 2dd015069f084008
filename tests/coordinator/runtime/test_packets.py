"""Packets of MQTT, as bytes that come in parts."""

import pytest
from paho.mqtt.exception import MalformedPacket
from tests.cases import cases

from muster_coordinator.runtime.packets import PUBLISH, IncomingMessage, Packet, PacketReader, message_of, packet_with

NAME = b"\x00\x01a"


@cases(
    "payload, length",
    [
        (0, b"\x03"),
        (127 - 3, b"\x7f"),
        (128 - 3, b"\x80\x01"),
        (16_383 - 3, b"\xff\x7f"),
        (16_384 - 3, b"\x80\x80\x01"),
        (2_097_152 - 3, b"\x80\x80\x80\x01"),
    ],
)
def test_a_message_is_written_and_read_with_any_length(payload, length):
    """The length has seven bits in each byte, the lowest first (MQTT 3.1.1, section 2.2.3)."""
    body = b"x" * payload
    written = packet_with("a", body)
    assert written == b"\x30" + length + NAME + body
    assert [*PacketReader().read(written)] == [Packet(PUBLISH, NAME + body)]


def test_parts_of_packets_wait_for_the_rest():
    """Wherever the bytes are cut, the same packets come in the same order, each when its last byte has come."""
    packets = [packet_with("a", b"x" * 200), b"\xd0\x00", packet_with("b", b"")]
    ends = [sum(map(len, packets[: number + 1])) for number in range(len(packets))]
    whole = b"".join(packets)
    wanted = [*PacketReader().read(whole)]
    assert [packet.first for packet in wanted] == [0x30, 0xD0, 0x30]
    for cut in range(len(whole) + 1):
        reader = PacketReader()
        before = [*reader.read(whole[:cut])]
        assert len(before) == sum(end <= cut for end in ends)
        assert [*before, *reader.read(whole[cut:])] == wanted


def test_a_length_without_an_end_is_malformed():
    """The packets before it count."""
    packets = PacketReader().read(b"\xd0\x00" + b"\x30\xff\xff\xff\xff\x01")
    assert next(packets) == Packet(0xD0, b"")
    with pytest.raises(MalformedPacket, match="length"):
        next(packets)


@cases(
    "first, body, message",
    [
        (0x30, NAME + b"x", IncomingMessage("a", b"x", retain=False)),
        (0x31, NAME, IncomingMessage("a", b"", retain=True)),
        (0x30, b"\x00\x02\xc3\xbcx", IncomingMessage("ü", b"x", retain=False)),
        (0x30, b"\x00\x01\xffx", IncomingMessage("\N{REPLACEMENT CHARACTER}", b"x", retain=False)),
    ],
)
def test_the_message_of_a_packet(first, body, message):
    """Also if only a broken broker could send its topic: it is refused later, as one of no node."""
    assert message_of(Packet(first, body)) == message


@cases("body", [b"\x00\x02a", b""])
def test_a_topic_that_is_longer_than_its_packet_is_malformed(body):
    """No message can be made of it."""
    with pytest.raises(MalformedPacket, match="topic"):
        message_of(Packet(PUBLISH, body))


@cases("first", [0x30, 0x31, 0x38])
def test_plain_messages(first):
    """Perhaps retained or sent again, but without a confirmation."""
    assert Packet(first, b"").is_plain_message


@cases("first", [0x32, 0x33, 0x34, 0x40, 0xD0])
def test_other_packets(first):
    """Messages that the broker wants confirmed, and what is no message."""
    assert not Packet(first, b"").is_plain_message
