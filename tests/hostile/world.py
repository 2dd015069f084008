"""A fleet as it is installed, with the broker's accounts and ACL that muster ships, and one node that is hostile."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from tests.faults.desk import Desk
from tests.faults.fleet import Fleet
from tests.waiting import wait_for

from muster.model import Inventory
from muster.wire.codec import encode
from muster.wire.messages import InventoryReport, NodeMessage, Presence
from muster.wire.topics import NodeTopic, Topics

TOPICS = Topics("default")

HOSTILE = "n1"
"""The node that a test plays: it has an account, and no agent of ours."""

HONEST = ("n2", "n3", "n4", "n5")
"""Nodes with real agents."""

FLOODER = "f1"
"""Another hostile node: whoever floods is not listened to for minutes, and `HOSTILE` has more to say."""

PROBE = "p1"
"""An honest node that a test plays."""

NOT_LOADED = ["fabric", "host", "kernel_log", "nvml", "ruin", "storage"]
"""Plugins whose checks find what is wrong with the machine that runs the tests, and one that cannot be loaded."""


def password_of(node: str) -> str:
    return f"password of {node}"


RUN_GIB = 3
"""What a run may take: less than a liar announces, and more than torch takes."""


MEETING_S = 20.0
"""How long a run with the liar may take: several times what torch needs to be loaded."""


class Attacker:
    """A client with the valid credentials of one node. It says whatever a test wants, and answers what it likes."""

    def __init__(self, port: int, account: str = HOSTILE, client_id: str = "") -> None:
        self.account = account
        self.heard: list[tuple[str, bytes]] = []
        self.answer: Callable[[str, bytes], None] = lambda _topic, _payload: None
        self._client = paho.Client(CallbackAPIVersion.VERSION2, client_id=client_id or f"{account}-{time.time_ns()}")
        self._client.username_pw_set(account, password_of(account))
        self._client.max_inflight_messages_set(1000)
        self._client.on_message = self._note
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        wait_for(self._client.is_connected, f"{account} to be connected")
        self._client.subscribe([(TOPICS.node(account, topic), 1) for topic in (NodeTopic.COMMAND, NodeTopic.ACK)])

    def say(self, topic: NodeTopic, message: NodeMessage | bytes, *, retain: bool = False, qos: int = 1) -> None:
        """Publishes under its own name; returns when the broker has confirmed it."""
        self.publish(TOPICS.node(self.account, topic), message, retain=retain, qos=qos)

    def publish(self, topic: str, message: NodeMessage | bytes, *, retain: bool = False, qos: int = 1) -> None:
        payload = message if isinstance(message, bytes) else encode(message)
        self._client.publish(topic, payload, qos=qos, retain=retain).wait_for_publish(20)

    def shout(self, topic: NodeTopic, payload: bytes, qos: int = 0) -> None:
        """Publishes without waiting for anything."""
        self._client.publish(TOPICS.node(self.account, topic), payload, qos=qos)

    def join(self, inventory: InventoryReport | None = None) -> None:
        """Comes to the fleet as a node does."""
        self.say(NodeTopic.PRESENCE, Presence(sent_at=time.time(), node=self.account, online=True), retain=True)
        own = inventory or InventoryReport(
            sent_at=time.time(), node=self.account, inventory=Inventory(), checks=(), plugins=()
        )
        self.say(NodeTopic.INVENTORY, own, retain=True)

    def leave(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _note(self, _client: Any, _data: Any, message: paho.MQTTMessage) -> None:
        payload = bytes(message.payload)
        self.heard.append((message.topic, payload))
        self.answer(message.topic, payload)


class World(Fleet):
    """The fleet in enforce mode: a node that is convicted or breaks goes out of service at once."""

    def __init__(self, directory: Path, broker: Any, plugin: Path, desk: Desk) -> None:
        super().__init__(directory, broker, plugin, nodes=HONEST)
        self.desk = desk
        self.coordinator.settings["quarantine"] = {
            "mode": "enforce",
            "budget": {"share": "100%", "domain_share": "100%", "per_minute": 6000},
            "mass_event": {"nodes": 100},
            "returning": {"wait_s": 0.0, "pause_s": 0.0, "passes": 1},
        }
        self.coordinator.settings["plugins"] = {"script": {"actor": {"path": str(desk.scheduler), "can_cordon": True}}}
        self._log_in(self.coordinator, "coordinator")
        for node, agent in self.agents.items():
            agent.settings["plugins"]["disabled"] = NOT_LOADED
            agent.settings["agent"]["memory_limit_gib"] = RUN_GIB
            agent.settings["checks"] |= {check: {"timeout_s": MEETING_S} for check in ("meeting", "reunion")}
            agent.settings["checks"]["memory"] = {"enabled": False}
            self._log_in(agent, node)

    def attacker(self, account: str = HOSTILE, client_id: str = "") -> Attacker:
        return Attacker(self.broker.port, account, client_id)

    def wait_until_there(self, node: str) -> None:
        """Returns when the coordinator has heard of the node and what it can do; its inventory has devices."""

        def is_there() -> bool:
            views = self.api.pages("nodes")["items"]
            return any(it["name"] == node and not it["lost"] and it["devices"] for it in views)

        wait_for(is_there, f"{node} to be there with its checks")

    def accused(self) -> list[str]:
        """Honest nodes that anything is held against."""
        return [node for node in HONEST if self.standing(node) != (False, "HEALTHY", "IN_SERVICE")]

    def standing(self, node: str) -> tuple[bool, str, str]:
        """Whether it is lost, its health and its service state."""
        view = self.api.get("nodes", node)
        return view["lost"], view["health"], view["service"]

    def _log_in(self, part: Any, account: str) -> None:
        secret = self._directory / f"{account}.password"
        secret.write_text(password_of(account))
        part.settings["broker"] = {"url": self.broker.url, "username": account, "password_file": str(secret)}
