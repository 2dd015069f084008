"""The broker in the cluster: a real Mosquitto with our settings, ACL and the Secrets that daemonset/secrets prints."""

import asyncio
import base64
import subprocess
from collections.abc import Iterator
from pathlib import Path

import aiomqtt
import pytest
import yaml

from muster.config import BrokerSettings
from muster.mqtt import connection_options
from muster.wire.topics import FROM_NODE, TO_NODE, Topics

ROOT = Path(__file__).parent.parent.parent
BROKER = ROOT / "daemonset" / "components" / "broker"
TOPICS = Topics("default")


@pytest.fixture(scope="module")
def secrets(tmp_path_factory) -> Path:
    """A directory for each Secret that the script prints, with its keys as files, as pods see it."""
    directory: Path = tmp_path_factory.mktemp("secrets")
    printed = subprocess.run([ROOT / "daemonset" / "secrets"], check=True, capture_output=True, timeout=60)
    for secret in yaml.safe_load_all(printed.stdout):
        (directory / secret["metadata"]["name"]).mkdir()
        for key, value in secret["data"].items():
            (directory / secret["metadata"]["name"] / key).write_bytes(base64.b64decode(value))
    return directory


@pytest.fixture(scope="module")
def broker(secrets, new_mosquitto) -> Iterator[str]:
    """On a free port, and with queues that have an end: some versions hang up on who is denied where they have none."""
    settings = (BROKER / "mosquitto.conf").read_text(encoding="utf-8")
    for line in ("listener 8883\n", "max_queued_messages 0\n"):
        assert line in settings
        settings = settings.replace(line, "")
    settings = settings.replace("/mosquitto/tls", str(secrets / "muster-broker-tls"))
    with new_mosquitto(settings.replace("/mosquitto/config", str(BROKER))) as running:
        yield f"mqtts://127.0.0.1:{running.port}"


@pytest.fixture
def client(secrets, broker):
    """Makes clients with the certificate of a Secret. They come by another name than the one in the broker's own."""

    def connect(secret: str) -> aiomqtt.Client:
        files = secrets / secret
        settings = BrokerSettings(
            ca_file=files / "ca.crt", cert_file=files / "tls.crt", key_file=files / "tls.key", url=broker
        )
        options = connection_options(settings, broker)
        options["tls_context"].check_hostname = False
        return aiomqtt.Client(**options)

    return connect


async def heard(listener: aiomqtt.Client, sender: aiomqtt.Client, topics: list[str], last: str) -> set[str]:
    """What of `topics`, published by `sender`, comes to `listener` before a `last` that surely does."""
    for topic in [*topics, last]:
        await sender.publish(topic, b"x", qos=1)
    arrived: set[str] = set()
    async with asyncio.timeout(20):
        async for message in listener.messages:
            if message.topic.value == last:
                return arrived
            arrived.add(message.topic.value)
    return arrived


async def test_nodes_say_what_nodes_have_to_say(client):
    """Under any node's name, and nothing that is for the coordinator to say."""
    first, *others = [TOPICS.node("n1", topic) for topic in FROM_NODE]
    forbidden = [TOPICS.coordinator, TOPICS.references, *(TOPICS.node("n1", topic) for topic in TO_NODE), "elsewhere"]
    async with client("muster-coordinator-tls") as coordinator, client("muster-node-tls") as node:
        await coordinator.subscribe("muster/v1/#", qos=1)
        assert await heard(coordinator, node, [*forbidden, *others], first) == set(others)


async def test_nodes_hear_what_is_meant_for_nodes(client):
    """Orders and the coordinator's words, nothing that nodes report."""
    meant = [*(TOPICS.node("n1", topic) for topic in TO_NODE), TOPICS.references]
    others = [TOPICS.node("n2", topic) for topic in FROM_NODE]
    async with client("muster-coordinator-tls") as coordinator, client("muster-node-tls") as node:
        await node.subscribe("muster/v1/#", qos=1)
        assert await heard(node, coordinator, [*others, *meant], TOPICS.coordinator) == set(meant)


def test_the_broker_is_who_the_settings_say(secrets):
    """Its certificate is for the name in `broker.url`, and as strict clients want it, such as Python since 3.13."""
    files = secrets / "muster-broker-tls"
    strictly = ["openssl", "verify", "-x509_strict", "-verify_hostname", "muster-broker.muster.svc"]
    done = subprocess.run(
        [*strictly, "-CAfile", files / "ca.crt", files / "tls.crt"], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_an_agent_with_its_own_certificate_is_held_to_its_name():
    """By the lines that the compose file's broker has as well."""
    patterns = [
        [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("pattern")]
        for path in (BROKER / "mosquitto.acl", ROOT / "docker" / "mosquitto.acl")
    ]
    assert patterns[0] == patterns[1] != []


def test_the_secrets_are_those_that_the_manifests_name(secrets):
    """In the forms that cert-manager makes as well; the token can stand in a header."""
    assert {path.name for path in secrets.iterdir()} == {
        "muster-broker-tls", "muster-coordinator-tls", "muster-node-tls", "muster-token",
    }  # fmt: skip
    for path in secrets.glob("*-tls"):
        assert {file.name for file in path.iterdir()} == {"ca.crt", "tls.crt", "tls.key"}
    assert len((secrets / "muster-token" / "token").read_text().strip()) == 64
