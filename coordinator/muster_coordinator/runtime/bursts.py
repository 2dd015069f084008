"""Reads from the broker in bursts, and not at all while enough messages wait in the inbox."""

import asyncio
import select
import socket
import ssl
import time
from collections.abc import Callable

import aiomqtt
from paho.mqtt.enums import MQTTErrorCode

from muster.token_bucket import TokenBucket

BURST = 500
"""Packets that are read before other tasks of this process get their turn: some 25 ms. It is ten times what is decoded
in a turn, so that an overloaded coordinator reads all that comes and chooses what to take.
"""

PAUSE_S = 0.05

TURNS_BURST, TURNS_PER_S = 100.0, 20.0
"""A large fleet sends all the time, and is read in 20 turns a second; with 2,000 nodes, ten messages come in each. In a
small one, and while groups form, each message is read as it comes.
"""

SUCCESS = MQTTErrorCode.MQTT_ERR_SUCCESS


def read_in_bursts(client: aiomqtt.Client, has_enough: Callable[[], bool]) -> None:
    """Makes a client read up to BURST packets in one turn of the event loop, and nothing while `has_enough()`.

    aiomqtt reads one packet in each turn. Turns are long while actors work, and reports would wait. aiomqtt also reads
    while nobody takes the messages, and drops messages that do not fit into its queue: with ten thousand nodes it
    dropped half of the inventories. The broker keeps packets that the client does not read.
    """
    bursts = _Bursts(client, has_enough)
    client._client.loop_read = bursts.read  # type: ignore[method-assign]  # replaced on purpose


class _Bursts:
    def __init__(self, client: aiomqtt.Client, has_enough: Callable[[], bool]) -> None:
        self._client = client
        self._paho = client._client  # aiomqtt has no public attribute for it
        self._read_one = self._paho.loop_read
        self._has_enough = has_enough
        self._turns = TokenBucket(TURNS_BURST, TURNS_PER_S)

    def read(self, max_packets: int = 1) -> MQTTErrorCode:
        """Reads the packets that have arrived. aiomqtt calls this in place of paho's `loop_read`."""
        connection = self._connection()
        if connection is not None and self._has_enough() and not _is_decoded(connection):
            self._pause(connection)
            return SUCCESS
        packets, code = 1, self._read_one(max_packets)
        while code == SUCCESS and (connection := self._connection()) is not None:
            if not _is_decoded(connection) and packets >= BURST:
                break
            if not _is_decoded(connection) and not _has_come(connection):
                self._spend_turn(connection)
                break
            packets, code = packets + 1, self._read_one(max_packets)
        return code

    def _connection(self) -> socket.socket | None:
        connection = self._paho.socket()
        assert connection is None or isinstance(connection, socket.socket)  # muster does not use MQTT over websockets
        return connection

    def _pause(self, connection: socket.socket) -> None:
        # Answers to our pings stay unread. Without this, paho would count the broker as silent and disconnect.
        self._paho._ping_t, self._paho._last_bytes_received = 0.0, time.monotonic()
        self._rest(connection)

    def _spend_turn(self, connection: socket.socket) -> None:
        """Rests after many short turns, so that the next messages come together: a turn costs as much as a message."""
        now = time.monotonic()
        if self._turns.left(now) < 1:
            self._rest(connection)
        else:
            self._turns.spend(1)

    def _rest(self, connection: socket.socket) -> None:
        """Reads nothing for PAUSE_S."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(connection.fileno())
        loop.call_later(PAUSE_S, self._go_on, connection)

    def _go_on(self, connection: socket.socket) -> None:
        """Reads again, unless the connection was lost meanwhile."""
        if self._connection() is connection:
            asyncio.get_running_loop().add_reader(connection.fileno(), self._has_come_again)

    def _has_come_again(self) -> None:
        try:
            self._paho.loop_read()
        except Exception as error:  # as in aiomqtt: any error means that the connection is broken
            if not self._client._disconnected.done():
                self._client._disconnected.set_exception(error)


def _is_decoded(connection: socket.socket) -> bool:
    """Whether TLS has decrypted bytes already. The socket alone does not show them."""
    return isinstance(connection, ssl.SSLSocket) and connection.pending() > 0


def _has_come(connection: socket.socket) -> bool:
    poll = select.poll()  # unlike select, poll accepts descriptors above 1023
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
