"""The access lists that `muster broker acl` prints."""

import time
from itertools import product
from pathlib import Path

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from tests.brokers import docker_settings, write_passwords
from tests.waiting import wait_for

from muster.broker_acl import COORDINATOR, emqx_acl, mosquitto_acl
from muster.wire.topics import FROM_NODE, TO_NODE, NodeTopic, Topics

ROOT = Path(__file__).parent.parent.parent
FLEET = "training"
TOPICS = Topics(FLEET)
NODE, OTHER = "n1.rack-2", "n2"
FOR_ALL = [TOPICS.coordinator, TOPICS.references]
OTHERS = [TOPICS.coordinator_echo, Topics("default").node(NODE, NodeTopic.REPORT), "muster", "$SYS/x", "a/b"]
ALL = [TOPICS.node(*each) for each in product((NODE, OTHER, COORDINATOR, "x"), NodeTopic)] + FOR_ALL + OTHERS
"""Every topic of two nodes, and others."""


class Client:
    """A client of an account that has subscribed to everything, and what it gets."""

    def __init__(self, port, account):
        self.got: set[str] = set()
        self.client = paho.Client(CallbackAPIVersion.VERSION2, client_id=account)
        self.client.username_pw_set(account, "p")
        self.client.on_message = lambda _client, _data, message: self.got.add(message.topic)
        self.client.connect("127.0.0.1", port)
        self.client.loop_start()
        wait_for(self.client.is_connected, f"{account} to be connected")
        self.client.subscribe([("#", 1), *((topic, 1) for topic in ALL)])
        time.sleep(0.2)

    def publish_everywhere(self):
        """Sends its name to every topic."""
        for topic in ALL:
            self.client.publish(topic, topic, qos=1)
        self.client.publish(f"{TOPICS.node(NODE, NodeTopic.REPORT)}", "last", qos=1).wait_for_publish(20)

    def end(self):
        self.client.disconnect()
        self.client.loop_stop()


@pytest.fixture
def clients(tmp_path, new_mosquitto, mosquitto_program):
    """Makes clients at a broker with the printed access list."""
    write_passwords(tmp_path / "passwords", dict.fromkeys((NODE, OTHER, COORDINATOR), "p"))
    (tmp_path / "acl").write_text(mosquitto_acl(FLEET))
    shipped = docker_settings(tmp_path / "passwords")
    settings = shipped.replace(str(ROOT / "docker" / "mosquitto.acl"), str(tmp_path / "acl"))
    made = []
    with new_mosquitto(settings, mosquitto_program) as broker:

        def make(account):
            made.append(Client(broker.port, account))
            return made[-1]

        yield make
        for client in made:
            client.end()


def test_a_node_publishes_only_below_its_name(clients):
    """It tries every topic; the coordinator gets what the broker lets through."""
    coordinator, node = clients(COORDINATOR), clients(NODE)
    node.publish_everywhere()
    allowed = {TOPICS.node(NODE, topic) for topic in FROM_NODE}
    wait_for(lambda: allowed <= coordinator.got, "what is allowed")
    time.sleep(0.3)
    assert coordinator.got == allowed


def test_a_node_reads_only_what_is_for_it(clients):
    """It subscribes to everything; the coordinator sends to every topic of the fleet."""
    coordinator, node = clients(COORDINATOR), clients(NODE)
    coordinator.publish_everywhere()
    allowed = {TOPICS.node(NODE, topic) for topic in TO_NODE} | set(FOR_ALL)
    wait_for(lambda: allowed <= node.got, "what is allowed")
    time.sleep(0.3)
    assert node.got == allowed
    assert not coordinator.got & {"muster", "a/b", Topics("default").node(NODE, NodeTopic.REPORT)}


def test_the_shipped_lists_are_those_that_are_printed(muster):
    """The rules of docker/ and daemonset/, for the fleet `default`; Kubernetes has other words for accounts."""
    printed = muster("broker", "acl", "mosquitto").stdout
    assert (ROOT / "docker" / "mosquitto.acl").read_text() == printed == mosquitto_acl("default")
    assert rules((ROOT / "daemonset" / "components" / "broker" / "mosquitto.acl").read_text()) == rules(printed)


def rules(text):
    """The lines that are not comments."""
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_emqx_gets_the_same_rights(muster):
    """Every topic that a node may use is there once, and nothing else is allowed."""
    printed = muster("broker", "acl", "emqx", env={"MUSTER_FLEET": FLEET}).stdout
    assert printed == emqx_acl(FLEET)
    publishing, subscribing, last = printed.strip().splitlines()[-3:]
    assert last == "{deny, all}."
    for line, kinds in ((publishing, FROM_NODE), (subscribing, TO_NODE)):
        assert all(line.count(f'"{TOPICS.node("${username}", kind)}"') == 1 for kind in kinds)


def test_another_broker_is_refused(muster):
    """With the names of those that there are."""
    done = muster("broker", "acl", "hivemq")
    assert done.returncode == 64
    assert "mosquitto" in done.stderr
