"""Reading from the broker in bursts."""

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import aiomqtt
import pytest
from paho.mqtt.enums import MQTTErrorCode

from muster_coordinator.runtime import bursts
from muster_coordinator.runtime.bursts import BURST_BYTES, PAUSE_S, TURNS_BURST, read_in_bursts
from muster_coordinator.runtime.packets import IncomingMessage, packet_with

SUCCESS, LOST = MQTTErrorCode.MQTT_ERR_SUCCESS, MQTTErrorCode.MQTT_ERR_CONN_LOST
MESSAGE = packet_with("a/b", b"x")
PINGRESP = b"\xd0\x00"
MOST = 1_000


class Paho:
    """What the reader needs of paho, with a real socket. `packets` are the messages that were taken.

    `handled` are the packets that were left to paho, which answers with `answer`; `ended` is why a connection ended.
    """

    def __init__(self, connection):
        self._ping_t = self._last_bytes_received = 0.0
        self._in_packet = {"command": 0}
        self.packets = []
        self.handled = []
        self.answer = SUCCESS
        self.ended = None
        self.client = None
        self.connection = connection

    def socket(self):
        return self.connection

    def _sock_recv(self, size):
        return self.connection.recv(size)

    def _packet_handle(self):
        self.handled.append((self._in_packet["command"], self._in_packet["packet"]))
        return self.answer

    def _loop_rc_handle(self, code):
        if code != SUCCESS:
            self.connection, self.ended = None, code
        return code

    def loop_read(self, max_packets=1):
        raise NotImplementedError("it was replaced")


@pytest.fixture
async def broker():
    """What the broker sends into, and the reader at the other end; what it has read waits to be taken."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        paho = Paho(theirs)
        client: Any = SimpleNamespace(_client=paho, messages=paho.packets, _disconnected=asyncio.Future())
        read_in_bursts(client, paho.packets.append, lambda: len(paho.packets) >= MOST)
        paho.client = client
        yield ours, paho


@pytest.mark.parametrize("packets", [1, 2, 50, 500])
async def test_all_that_has_come_is_read_in_one_turn(broker, packets):
    """And no more is waited for. What is no message is left to paho."""
    ours, paho = broker
    ours.send(PINGRESP + MESSAGE * packets + MESSAGE[:-1])
    assert (paho.loop_read(), len(paho.packets)) == (SUCCESS, packets)
    assert paho.handled == [(0xD0, bytearray())]
    ours.send(MESSAGE[-1:])
    assert (paho.loop_read(), len(paho.packets)) == (SUCCESS, packets + 1)


async def test_others_get_their_turn(broker):
    """However much has come."""
    ours, paho = broker
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * BURST_BYTES)
    large = packet_with("a", b"x" * (BURST_BYTES // 4))
    assert ours.send(6 * large) == 6 * len(large)
    paho.loop_read()
    assert len(paho.packets) == 3
    paho.loop_read()
    assert len(paho.packets) == 6


async def test_after_many_turns_messages_are_read_together(broker, eventually, monkeypatch):
    """A few are read as they come; each turn costs as much as a message."""
    monkeypatch.setattr(bursts, "time", SimpleNamespace(monotonic=lambda: 1.0))
    ours, paho = broker
    asyncio.get_running_loop().add_reader(paho.socket().fileno(), paho.loop_read)
    for number in range(1, int(TURNS_BURST) + 2):
        ours.send(MESSAGE)
        while len(paho.packets) < number:
            await asyncio.sleep(0)
    read = len(paho.packets)
    for _ in range(10):
        ours.send(MESSAGE)
        await asyncio.sleep(0)
    assert len(paho.packets) == read
    await eventually(lambda: len(paho.packets) == read + 10)


async def test_a_connection_that_ends_is_reported_after_its_last_messages(broker):
    """The broker may have said something before it ended it."""
    ours, paho = broker
    ours.send(MESSAGE * 3)
    ours.shutdown(socket.SHUT_WR)
    assert (paho.loop_read(), len(paho.packets), paho.ended) == (LOST, 3, LOST)
    assert paho.loop_read() == MQTTErrorCode.MQTT_ERR_NO_CONN


@pytest.mark.parametrize("broken", [b"\x30\xff\xff\xff\xff\x01", b"\x30\x03\x00\x02a"])
async def test_a_broker_that_breaks_the_protocol_is_left(broker, broken):
    """With a length that has no end, or a topic that is longer than its packet."""
    ours, paho = broker
    ours.send(MESSAGE + broken)
    assert (paho.loop_read(), len(paho.packets)) == (MQTTErrorCode.MQTT_ERR_PROTOCOL, 1)
    assert paho.ended == MQTTErrorCode.MQTT_ERR_PROTOCOL


async def test_what_paho_refuses_ends_the_connection(broker):
    """Such as a packet that is not from a broker."""
    ours, paho = broker
    paho.answer = MQTTErrorCode.MQTT_ERR_PROTOCOL
    ours.send(PINGRESP + MESSAGE)
    assert (paho.loop_read(), len(paho.packets)) == (MQTTErrorCode.MQTT_ERR_PROTOCOL, 0)


async def test_what_comes_stays_where_it_is_while_enough_waits(broker, eventually):
    """And is read when that has been taken, by itself."""
    ours, paho = broker
    asyncio.get_running_loop().add_reader(paho.socket().fileno(), paho.loop_read)
    ours.send(MESSAGE * MOST)
    await eventually(lambda: len(paho.packets) == MOST)
    ours.send(MESSAGE * 3)
    await asyncio.sleep(3 * PAUSE_S)
    assert len(paho.packets) == MOST
    paho.packets.clear()
    await eventually(lambda: len(paho.packets) == 3)


async def test_a_connection_that_is_lost_meanwhile_is_left_alone(broker):
    """Its descriptor may be somebody else's by now."""
    ours, paho = broker
    ours.send(MESSAGE)
    paho.packets += [b""] * MOST
    descriptor = paho.socket().fileno()
    paho.loop_read()
    paho.connection = None
    await asyncio.sleep(3 * PAUSE_S)
    assert not asyncio.get_running_loop().remove_reader(descriptor)


async def test_an_error_after_a_pause_ends_the_connection(broker):
    """As one does that comes before any."""
    ours, paho = broker
    ours.send(PINGRESP)
    paho.packets += [b""] * MOST
    paho.loop_read()
    paho.packets.clear()
    paho.client._client._packet_handle = None
    with pytest.raises(TypeError):
        await asyncio.wait_for(paho.client._disconnected, 5)


async def test_a_broker_whose_answers_are_not_read_is_not_taken_for_a_silent_one(mosquitto):
    """For however long nothing is taken: the broker answers pings, and hears ours."""
    options: dict[str, Any] = {"hostname": "127.0.0.1", "port": mosquitto.port}
    async with aiomqtt.Client(**options) as node:
        for number in range(20):
            await node.publish(f"kept/{number}", "x", retain=True)
    async with aiomqtt.Client(**options, keepalive=1) as client:
        taken: list[IncomingMessage] = []
        read_in_bursts(client, taken.append, lambda: len(taken) >= 1)
        await client.subscribe("kept/#", timeout=30)
        await asyncio.sleep(5)  # the broker gives up after one and a half times the keep-alive
        came: list[IncomingMessage] = []
        while len(came) < 20:
            came += taken
            taken.clear()
            await asyncio.sleep(0.01)
        await client.publish("alive", "x", qos=1, timeout=10)
