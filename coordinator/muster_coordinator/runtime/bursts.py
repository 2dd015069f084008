"""Reads from the broker in bursts, and not at all while enough messages wait in the inbox.

paho does the rest of the protocol: it connects, subscribes, pings, publishes with QoS 1, and closes a lost connection.
"""

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Any

import aiomqtt
from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.exception import MalformedPacket

from muster.token_bucket import TokenBucket
from muster_coordinator.runtime.packets import IncomingMessage, Packet, PacketReader, message_of

BURST_BYTES = 128 << 10
"""Bytes that are read before other tasks of this process get their turn: some 500 messages. It is ten times what is
decoded in a turn, so that an overloaded coordinator reads all that comes and chooses what to take.
"""

PAUSE_S = 0.05

TURNS_BURST, TURNS_PER_S = 100.0, 20.0
"""A large fleet sends all the time, and is read in 20 turns a second; with 2,000 nodes, ten messages come in each. In a
small one, and while groups form, each message is read as it comes.
"""

SUCCESS = MQTTErrorCode.MQTT_ERR_SUCCESS


def read_in_bursts(
    client: aiomqtt.Client, take: Callable[[IncomingMessage], None], has_enough: Callable[[], bool]
) -> None:
    """Makes a client read BURST_BYTES in one turn of the event loop, and nothing while `has_enough()`.

    `take` gets each message. A client that subscribes with QoS 0 may still get others: amqtt sends last wills with the
    QoS that their clients gave them. paho confirms these.

    aiomqtt reads one packet in each turn. Turns are long while actors work, and reports would wait. aiomqtt also reads
    while nobody takes the messages, and drops messages that do not fit into its queue: with ten thousand nodes it
    dropped half of the inventories. The broker keeps packets that the client does not read.
    """
    bursts = _Bursts(client, take, has_enough)
    client._client.loop_read = bursts.read  # type: ignore[method-assign]  # replaced on purpose


class _Bursts:
    def __init__(
        self, client: aiomqtt.Client, take: Callable[[IncomingMessage], None], has_enough: Callable[[], bool]
    ) -> None:
        self._client = client
        self._paho: Client = client._client  # aiomqtt has no public attribute for it
        self._take = take
        self._has_enough = has_enough
        self._packets = PacketReader()
        self._turns = TokenBucket(TURNS_BURST, TURNS_PER_S)
        self._paho.on_message = self._take_confirmed

    def read(self, max_packets: int = 1) -> MQTTErrorCode:
        """Reads the packets that have arrived. aiomqtt calls this in place of paho's `loop_read`."""
        connection = self._connection()
        if connection is None:
            return MQTTErrorCode.MQTT_ERR_NO_CONN
        if self._has_enough():
            self._pause(connection)
            return SUCCESS
        received, state = self._receive()
        state = self._handle(received) or state
        if state == MQTTErrorCode.MQTT_ERR_AGAIN:
            if self._connection() is connection:
                self._spend_turn(connection)
            return SUCCESS
        return self._paho._loop_rc_handle(state)

    def _receive(self) -> tuple[bytearray, MQTTErrorCode]:
        """What has come: SUCCESS if more may have come, AGAIN if not, or what ended the connection."""
        received = bytearray()
        while len(received) < BURST_BYTES:  # with TLS, each message may come by itself
            try:
                part = self._paho._sock_recv(BURST_BYTES - len(received))
            except BlockingIOError:
                return received, MQTTErrorCode.MQTT_ERR_AGAIN
            except OSError:
                return received, MQTTErrorCode.MQTT_ERR_CONN_LOST
            if not part:
                return received, MQTTErrorCode.MQTT_ERR_CONN_LOST
            received += part
        return received, SUCCESS

    def _handle(self, received: bytearray) -> MQTTErrorCode:
        """Takes the messages in what has come, and leaves the other packets to paho."""
        self._paho._last_bytes_received = time.monotonic()
        try:
            for packet in self._packets.read(received):
                if packet.is_plain_message:
                    self._take(message_of(packet))
                elif code := self._handle_by_paho(packet):
                    return code
        except MalformedPacket:
            return MQTTErrorCode.MQTT_ERR_PROTOCOL
        return SUCCESS

    def _take_confirmed(self, _client: Client, _userdata: Any, message: MQTTMessage) -> None:
        self._take(IncomingMessage(message._topic.decode(errors="replace"), bytes(message.payload), message.retain))

    def _handle_by_paho(self, packet: Packet) -> MQTTErrorCode:
        content = {
            "command": packet.first,
            "remaining_length": len(packet.body),
            "packet": bytearray(packet.body),
            "pos": 0,
        }
        self._paho._in_packet |= content  # type: ignore[typeddict-item]
        return self._paho._packet_handle()

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
