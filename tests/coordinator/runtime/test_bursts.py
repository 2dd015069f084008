"""Reading from the broker in bursts."""

import asyncio
import socket
from types import SimpleNamespace
from typing import Any

import aiomqtt
import pytest
from paho.mqtt.enums import MQTTErrorCode

from muster_coordinator.runtime import bursts
from muster_coordinator.runtime.bursts import BURST, PAUSE_S, TURNS_BURST, read_in_bursts

SUCCESS = MQTTErrorCode.MQTT_ERR_SUCCESS
MOST = BURST * 3 // 2


class Paho:
    """Reads a packet of one byte from a real socket for each call, as paho does when it has sent nothing."""

    def __init__(self, connection):
        self._ping_t = self._last_bytes_received = 0.0
        self.packets = []
        self.ends_at = None
        self.error = None
        self.client = None
        self.connection = connection

    def socket(self):
        return self.connection

    def loop_read(self, max_packets=1):
        if self.error:
            raise self.error
        self.packets.append(self.connection.recv(1))
        if len(self.packets) == self.ends_at:
            self.connection = None
            return MQTTErrorCode.MQTT_ERR_CONN_LOST
        return SUCCESS


@pytest.fixture
async def broker():
    """What the broker sends into, and the reader at the other end; what it has read waits to be taken."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        paho = Paho(theirs)
        client: Any = SimpleNamespace(_client=paho, messages=paho.packets, _disconnected=asyncio.Future())
        read_in_bursts(client, lambda: len(paho.packets) >= MOST)
        paho.client = client
        yield ours, paho


@pytest.mark.parametrize("packets", [1, 2, 50, BURST])
async def test_all_that_has_come_is_read_in_one_turn(broker, packets):
    """And no more is waited for."""
    ours, paho = broker
    ours.sendall(b"x" * packets)
    assert (paho.loop_read(), len(paho.packets)) == (SUCCESS, packets)


async def test_others_get_their_turn(broker):
    """However much has come."""
    ours, paho = broker
    ours.sendall(b"x" * (BURST + 10))
    paho.loop_read()
    assert len(paho.packets) == BURST
    paho.loop_read()
    assert len(paho.packets) == BURST + 10


async def test_after_many_turns_messages_are_read_together(broker, eventually, monkeypatch):
    """A few are read as they come; each turn costs as much as a message."""
    monkeypatch.setattr(bursts, "time", SimpleNamespace(monotonic=lambda: 1.0))
    ours, paho = broker
    asyncio.get_running_loop().add_reader(paho.socket().fileno(), paho.loop_read)
    for number in range(1, int(TURNS_BURST) + 2):
        ours.sendall(b"x")
        while len(paho.packets) < number:
            await asyncio.sleep(0)
    read = len(paho.packets)
    for _ in range(10):
        ours.sendall(b"x")
        await asyncio.sleep(0)
    assert len(paho.packets) == read
    await eventually(lambda: len(paho.packets) == read + 10)


async def test_nothing_is_read_from_a_connection_that_is_lost(broker):
    """What paho says of it is said on."""
    ours, paho = broker
    ours.sendall(b"x" * 10)
    paho.ends_at = 3
    assert (paho.loop_read(), len(paho.packets)) == (MQTTErrorCode.MQTT_ERR_CONN_LOST, 3)


async def test_what_comes_stays_where_it_is_while_enough_waits(broker, eventually):
    """And is read when that has been taken, by itself."""
    ours, paho = broker
    ours.sendall(b"x" * 3 * MOST)
    asyncio.get_running_loop().add_reader(paho.socket().fileno(), paho.loop_read)
    for came in (2 * BURST, 2 * BURST, 3 * MOST - 4 * BURST):
        await eventually(lambda came=came: len(paho.packets) == came)
        await asyncio.sleep(3 * PAUSE_S)
        assert len(paho.packets) == came
        paho.packets.clear()


async def test_a_connection_that_is_lost_meanwhile_is_left_alone(broker):
    """Its descriptor may be somebody else's by now."""
    ours, paho = broker
    ours.sendall(b"x" * 10)
    paho.packets += [b""] * MOST
    descriptor = paho.socket().fileno()
    paho.loop_read()
    paho.connection = None
    await asyncio.sleep(3 * PAUSE_S)
    assert not asyncio.get_running_loop().remove_reader(descriptor)


async def test_an_error_after_a_pause_ends_the_connection(broker):
    """As one does that comes before any."""
    ours, paho = broker
    ours.sendall(b"x" * 10)
    paho.packets += [b""] * MOST
    paho.loop_read()
    paho.packets.clear()
    paho.error = OSError("broken")
    with pytest.raises(OSError, match="broken"):
        await asyncio.wait_for(paho.client._disconnected, 5)


async def test_a_broker_whose_answers_are_not_read_is_not_taken_for_a_silent_one(mosquitto):
    """For however long nothing is taken: the broker answers pings, and hears ours."""
    options: dict[str, Any] = {"hostname": "127.0.0.1", "port": mosquitto.port}
    async with aiomqtt.Client(**options) as node:
        for number in range(20):
            await node.publish(f"kept/{number}", "x", retain=True)
    async with aiomqtt.Client(**options, keepalive=1) as client:
        read_in_bursts(client, lambda: len(client.messages) >= 1)
        await client.subscribe("kept/#", timeout=30)
        await asyncio.sleep(5)  # the broker gives up after one and a half times the keep-alive
        for _ in range(20):
            await asyncio.wait_for(anext(client.messages), 10)
        await client.publish("alive", "x", qos=1, timeout=10)
