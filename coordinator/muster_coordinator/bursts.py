"""Reading from the broker in bursts."""

import select

import aiomqtt
from paho.mqtt.client import Client
from paho.mqtt.enums import MQTTErrorCode

BURST = 200
"""Packets that are read before others in this process get their turn."""


def read_in_bursts(client: aiomqtt.Client) -> None:
    """Has a client read all that has come at once, up to BURST packets.

    aiomqtt reads one packet in each turn of the event loop. While actors are at work turns are long, and what nodes
    report would wait for them.
    """
    paho = client._client  # aiomqtt gives no other way to it
    read_one = paho.loop_read

    def read(max_packets: int = 1) -> MQTTErrorCode:
        code = read_one(max_packets)
        for _ in range(BURST - 1):
            if code != MQTTErrorCode.MQTT_ERR_SUCCESS or not _has_more(paho):
                break
            code = read_one(max_packets)
        return code

    paho.loop_read = read  # type: ignore[method-assign]  # replaced on purpose


def _has_more(paho: Client) -> bool:
    connection = paho.socket()
    if connection is None:
        return False
    poll = select.poll()  # which, unlike select, takes descriptors above 1023
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
