"""Reading from the broker in bursts."""

import socket
from types import SimpleNamespace
from typing import Any

import pytest
from paho.mqtt.enums import MQTTErrorCode

from muster_coordinator.bursts import BURST, read_in_bursts

SUCCESS = MQTTErrorCode.MQTT_ERR_SUCCESS


class Paho:
    """Reads a packet of one byte from a real socket for each call, as paho does when it has sent nothing."""

    def __init__(self, connection):
        self.packets = []
        self.ends_at = None
        self._connection = connection

    def socket(self):
        return self._connection

    def loop_read(self, max_packets=1):
        self.packets.append(self._connection.recv(1))
        if len(self.packets) == self.ends_at:
            self._connection = None
            return MQTTErrorCode.MQTT_ERR_CONN_LOST
        return SUCCESS


@pytest.fixture
def broker():
    """What the broker sends into, and the reader at the other end."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        paho = Paho(theirs)
        client: Any = SimpleNamespace(_client=paho)
        read_in_bursts(client)
        yield ours, paho


@pytest.mark.parametrize("packets", [1, 2, 50, BURST])
def test_all_that_has_come_is_read_in_one_turn(broker, packets):
    """And no more is waited for."""
    ours, paho = broker
    ours.sendall(b"x" * packets)
    assert (paho.loop_read(), len(paho.packets)) == (SUCCESS, packets)


def test_others_get_their_turn(broker):
    """However much has come."""
    ours, paho = broker
    ours.sendall(b"x" * (BURST + 10))
    paho.loop_read()
    assert len(paho.packets) == BURST
    paho.loop_read()
    assert len(paho.packets) == BURST + 10


def test_nothing_is_read_from_a_connection_that_is_lost(broker):
    """What paho says of it is said on."""
    ours, paho = broker
    ours.sendall(b"x" * 10)
    paho.ends_at = 3
    assert (paho.loop_read(), len(paho.packets)) == (MQTTErrorCode.MQTT_ERR_CONN_LOST, 3)
