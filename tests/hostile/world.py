"""A fleet as it is installed, with the broker's accounts and ACL that muster ships, and one node that is hostile."""

import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from tests.brokers import write_passwords
from tests.faults.desk import Desk
from tests.faults.fleet import OF_THIS_HOST, Fleet
from tests.faults.parts import Agent
from tests.muster_process import TORCH
from tests.waiting import wait_for

from muster.model import Inventory
from muster.wire.codec import encode
from muster.wire.messages import InventoryReport, NodeMessage, Presence
from muster.wire.topics import NodeTopic, Topics

TOPICS = Topics("default")

HOSTILE = "n1"
"""The node that a test plays: it has an account, but no real agent."""

HONEST = ("n2", "n3", "n4", "n5")
"""Nodes with real agents."""

FLOODER = "f1"
"""Another hostile node. The coordinator mutes a node that floods for minutes, and other tests need `HOSTILE`."""

PROBE = "p1"
"""An honest node that a test plays."""

NOT_LOADED = (*OF_THIS_HOST, "ruin")
"""One of these plugins cannot be loaded."""

RUN_GIB = 3
"""Memory limit of a run: less than a lying node announces, and more than torch needs."""

MEETING_S = 20.0
"""Timeout of a run with the lying node: several times what torch needs to load."""

PATIENCE_S = 5.0
"""How long a message may take to the API before it is sent again."""


def password_of(account: str) -> str:
    return f"password of {account}"


def write_accounts(directory: Path) -> Path:
    """A password file with accounts for the coordinator and every node."""
    accounts = ("coordinator", HOSTILE, FLOODER, PROBE, *HONEST)
    passwords = directory / "passwords"
    write_passwords(passwords, {account: password_of(account) for account in accounts})
    return passwords


class Attacker:
    """A client with the valid credentials of one node.

    It publishes what a test tells it to, and calls `answer` with the topic and payload of each message that comes.
    """

    def __init__(self, port: int, account: str = HOSTILE, client_id: str = "") -> None:
        self.account = account
        self.answer: Callable[[str, bytes], None] = lambda _topic, _payload: None
        self._client = paho.Client(CallbackAPIVersion.VERSION2, client_id=client_id or f"{account}-{time.time_ns()}")
        self._client.username_pw_set(account, password_of(account))
        self._client.max_inflight_messages_set(1000)
        self._client.on_message = self._pass_on
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()
        wait_for(self._client.is_connected, f"{account} to be connected")
        self._client.subscribe([(TOPICS.node(account, topic), 1) for topic in (NodeTopic.COMMAND, NodeTopic.ACK)])

    def send(self, topic: NodeTopic, message: NodeMessage | bytes, *, retain: bool = False) -> None:
        """Publishes below its own name; returns when the broker has confirmed it."""
        payload = message if isinstance(message, bytes) else encode(message)
        sent = self._client.publish(TOPICS.node(self.account, topic), payload, qos=1, retain=retain)
        sent.wait_for_publish(20)

    def send_unconfirmed(self, topic: NodeTopic, payload: bytes) -> None:
        """Publishes below its own name, without waiting for the broker."""
        self._client.publish(TOPICS.node(self.account, topic), payload, qos=1)

    def join(self, inventory: InventoryReport | None = None) -> None:
        """Announces itself and its inventory, as a node does when it connects."""
        self.send(NodeTopic.PRESENCE, Presence(sent_at=time.time(), node=self.account, online=True), retain=True)
        own = inventory or InventoryReport(
            sent_at=time.time(), node=self.account, inventory=Inventory(), checks=(), plugins=()
        )
        self.send(NodeTopic.INVENTORY, own, retain=True)

    def leave(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()

    def _pass_on(self, _client: Any, _data: Any, message: paho.MQTTMessage) -> None:
        self.answer(message.topic, bytes(message.payload))


class World(Fleet):
    """The fleet in enforce mode: the coordinator cordons a node at once when it is convicted or reports a fault."""

    def __init__(self, directory: Path, broker: Any, plugin: Path, nodes: Sequence[str] = HONEST) -> None:
        super().__init__(directory, broker, plugin, nodes=nodes)
        (directory / "desk").mkdir()
        desk = Desk(directory / "desk")
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
            agent.imports = TORCH
            self._log_in(agent, node)

    def attacker(self, account: str = HOSTILE, client_id: str = "") -> Attacker:
        return Attacker(self.broker.port, account, client_id)

    def wait_until_there(self, node: str) -> None:
        """Returns when the API shows that the node is not lost and has devices."""

        def is_there() -> bool:
            views = self.api.pages("nodes")["items"]
            return any(view["name"] == node and not view["lost"] and view["devices"] for view in views)

        wait_for(is_there, f"{node} to be there with its checks")

    def announce(self, attacker: Attacker, payload: bytes) -> None:
        """Connects the hostile node and announces an inventory; returns when it was accepted or refused.

        The name of its first plugin identifies the inventory. It is sent again if the coordinator did not react: that
        drops messages beyond a node's allowance.
        """
        plugin = json.loads(payload)["plugins"][0]["name"]
        refused = self.counter("muster_messages_refused_total", kind="malformed")

        def is_handled() -> bool:
            if self.counter("muster_messages_refused_total", kind="malformed") > refused:
                return True
            return any(shown["name"] == plugin for shown in self.api.get("nodes", attacker.account)["plugins"])

        def is_sent_and_handled() -> bool:
            attacker.send(NodeTopic.INVENTORY, payload, retain=True)
            deadline = time.monotonic() + PATIENCE_S
            while not is_handled() and time.monotonic() < deadline:
                time.sleep(0.02)
            return is_handled()

        online = Presence(sent_at=time.time(), node=attacker.account, online=True)
        attacker.send(NodeTopic.PRESENCE, online, retain=True)
        wait_for(lambda: attacker.account in self.names(), "the node to be known")
        wait_for(is_sent_and_handled, "the announcement to be handled")

    def names(self) -> list[str]:
        return [view["name"] for view in self.api.pages("nodes")["items"]]

    def wait_until_delivered(self, *nodes: str) -> None:
        """Returns when the coordinator has stored all that these nodes have reported so far."""
        for agent in (self.agents[node] for node in nodes):
            wait_for(partial(_has_delivered, agent), f"the outbox of {agent.settings['node']} to be empty")

    def accused(self) -> list[str]:
        """The honest nodes that are lost, not healthy or not in service."""
        return [node for node in HONEST if self.standing(node) != (False, "HEALTHY", "IN_SERVICE")]

    def standing(self, node: str) -> tuple[bool, str, str]:
        """Whether it is lost, its health and its service state."""
        view = self.api.get("nodes", node)
        return view["lost"], view["health"], view["service"]

    def _log_in(self, part: Any, account: str) -> None:
        secret = self._directory / f"{account}.password"
        secret.write_text(password_of(account))
        part.settings["broker"] = {"url": self.broker.url, "username": account, "password_file": str(secret)}


def _has_delivered(agent: Agent) -> bool:
    return agent.counter("muster_agent_outbox_depth") == 0
