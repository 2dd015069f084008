"""The broker in the cluster: a real Mosquitto with our settings, ACL and the Secrets that daemonset/secrets prints."""

import asyncio
import base64
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiomqtt
import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from tests.brokers import ROOT, kubernetes_settings
from tests.deploy.clients import delivered
from tests.deploy.test_manifests import SECRETS

from muster.config import BrokerSettings
from muster.mqtt import connection_options
from muster.wire.topics import FROM_NODE, TO_NODE, NodeTopic, Topics
from muster_plugins.schedulers.kubernetes.enrolment.authority import Authority, utc_now

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
def broker(secrets, new_mosquitto, mosquitto_program) -> Iterator[str]:
    """Mosquitto on a free port, with the settings that it has in Kubernetes; gives its URL."""
    with new_mosquitto(kubernetes_settings(secrets / "muster-broker-tls"), mosquitto_program) as running:
        yield f"mqtts://127.0.0.1:{running.port}"


@pytest.fixture(scope="module")
def certify(secrets, tmp_path_factory):
    """Makes a directory with the certificate and key of a node's agent: `certify("n1")`."""
    authority = Authority.read(secrets / "muster-authority")

    def certifying(node: str) -> Path:
        directory: Path = tmp_path_factory.mktemp("tls")
        key = ec.generate_private_key(ec.SECP256R1())
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (directory / "tls.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        (directory / "tls.crt").write_bytes(authority.issue(node, public, utc_now()))
        (directory / "ca.crt").write_bytes((secrets / "muster-ca" / "ca.crt").read_bytes())
        return directory

    return certifying


@pytest.fixture
def connect(broker):
    """Makes clients with the files of a directory. They do not check the host name in the broker's certificate."""

    def connecting(files: Path, **more: Any) -> aiomqtt.Client:
        settings = BrokerSettings(
            ca_file=files / "ca.crt", cert_file=files / "tls.crt", key_file=files / "tls.key", url=broker
        )
        options = connection_options(settings, broker)
        options["tls_context"].check_hostname = False
        return aiomqtt.Client(**options, **more)

    return connecting


@pytest.mark.parametrize("node", ["n1", "ip-10-0-0-1.ec2.internal", "n" * 253])
async def test_a_node_publishes_its_own_messages(secrets, certify, connect, node):
    """It publishes under its own name only, and nothing that only the coordinator may publish."""
    last, *own = [TOPICS.node(node, topic) for topic in FROM_NODE]
    forbidden = [TOPICS.coordinator, TOPICS.references, "elsewhere", *(TOPICS.node(node, topic) for topic in TO_NODE)]
    forbidden += [TOPICS.node("n2", topic) for topic in FROM_NODE]
    async with connect(secrets / "muster-coordinator-tls") as coordinator, connect(certify(node)) as agent:
        await coordinator.subscribe("muster/v1/#", qos=1)
        assert await delivered(coordinator, agent, [*forbidden, *own], last) == set(own)


async def test_a_node_reads_only_what_is_sent_to_it(secrets, certify, connect):
    """Its own orders and what the coordinator sends to all; nothing to or from other nodes."""
    meant = [*(TOPICS.node("n1", topic) for topic in TO_NODE), TOPICS.references]
    others = [TOPICS.node("n2", topic) for topic in (*TO_NODE, *FROM_NODE)]
    async with connect(secrets / "muster-coordinator-tls") as coordinator, connect(certify("n1")) as agent:
        await agent.subscribe("muster/v1/#", qos=1)
        assert await delivered(agent, coordinator, [*others, *meant], TOPICS.coordinator) == set(meant)


async def test_another_node_s_client_id_ends_no_connection(certify, connect):
    """A client that asks for the client id of another node's agent replaces only connections of its own account."""
    topic = TOPICS.node("n2", NodeTopic.ACK)
    async with connect(certify("n2"), identifier="muster-default-n2") as victim, connect(certify("n1")):
        for identifier in ("muster-default-n2", "n2"):
            async with connect(certify("n1"), identifier=identifier) as hostile:
                await hostile.publish(TOPICS.node("n1", NodeTopic.REPORT), b"x", qos=1)
        await victim.subscribe(topic, qos=1)  # would fail on a connection that has ended


async def test_a_renewed_certificate_is_the_same_client(certify, connect):
    """A node's new connection replaces its old one."""
    async with connect(certify("n1")) as old, connect(certify("n1")):
        with pytest.raises(aiomqtt.MqttError):
            async with asyncio.timeout(20):
                async for _ in old.messages:
                    pass


async def test_the_account_node_publishes_for_no_other_node(certify, connect, secrets):
    """All nodes shared the account `node` in earlier releases; it has no special rights any more."""
    async with connect(secrets / "muster-coordinator-tls") as coordinator, connect(certify("node")) as node:
        await coordinator.subscribe("muster/v1/#", qos=1)
        others = [TOPICS.node("n1", topic) for topic in FROM_NODE]
        assert await delivered(coordinator, node, others, TOPICS.node("node", NodeTopic.REPORT)) == set()


@pytest.mark.parametrize("server", ["muster-broker", "muster-signer"])
def test_certificates_of_servers_fit_their_names(secrets, server):
    """They are valid for the name of the Service, also for strict clients such as Python 3.13, and not for clients."""
    files = secrets / f"{server}-tls"
    strictly = ["openssl", "verify", "-x509_strict", "-CAfile", files / "ca.crt"]
    named = ["-purpose", "sslserver", "-verify_hostname", f"{server}.muster.svc", files / "tls.crt"]
    done = subprocess.run([*strictly, *named], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    as_client = [*strictly, "-purpose", "sslclient", files / "tls.crt"]
    assert subprocess.run(as_client, capture_output=True, timeout=60, check=False).returncode != 0


def test_both_acl_files_are_the_same_but_for_comments():
    """The ACL of docker/ and the ACL in Kubernetes."""
    files = (ROOT / "docker" / "mosquitto.acl", ROOT / "daemonset" / "components" / "broker" / "mosquitto.acl")
    lines = [[line for line in path.read_text(encoding="utf-8").splitlines() if line[:1] != "#"] for path in files]
    assert lines[0] == lines[1] != []


def test_the_secrets_are_those_that_the_manifests_name(secrets):
    """In the forms that cert-manager makes as well; the token can stand in a header."""
    assert {path.name for path in secrets.iterdir()} == SECRETS
    for path in (*secrets.glob("*-tls"), secrets / "muster-authority"):
        assert {file.name for file in path.iterdir()} == {"ca.crt", "tls.crt", "tls.key"}
    assert {file.name for file in (secrets / "muster-ca").iterdir()} == {"ca.crt"}
    assert len((secrets / "muster-token" / "token").read_text().strip()) == 64


def test_the_authority_s_key_is_in_one_secret(secrets):
    """In the signer's."""
    key = (secrets / "muster-authority" / "tls.key").read_bytes()
    assert [path.parent.name for path in secrets.rglob("*") if path.is_file() and path.read_bytes() == key] == [
        "muster-authority"
    ]
