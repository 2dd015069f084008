"""TLS to a real Mosquitto that knows its clients by their certificates, with an authority that the tests make."""

import asyncio
import contextlib
import gc
import subprocess
import time
from pathlib import Path

import aiomqtt
import pytest
import structlog
from tests.deploy.authority import Authority

from muster.broker_acl import COORDINATOR, mosquitto_acl
from muster.config import BrokerSettings, Settings
from muster.model import Inventory, Run, Verdict
from muster.mqtt import connection_options, why_not_connected
from muster.wire.codec import encode
from muster.wire.messages import CoordinatorPresence, InventoryReport
from muster.wire.topics import NodeTopic, Topics
from muster_agent.decide import delivery
from muster_agent.wire.link import AgentLink
from muster_agent.wire.metrics import AgentMetrics
from muster_agent.wire.outbox import Outbox

# paho leaves the socket of a failed handshake to the garbage collector, which `refusal` calls.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")

TOPICS = Topics("default")

PAST = ("20200101000000Z", "20210101000000Z")
FUTURE = ("20390101000000Z", "20400101000000Z")

Identity = tuple[Path, Path]


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"), "authority")


@pytest.fixture(scope="module")
def stranger(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("stranger"), "stranger")


@pytest.fixture(scope="module")
def revoked(authority) -> Identity:
    identity: Identity = authority.issue("n1")
    authority.revoke(identity[0])
    return identity


@pytest.fixture(scope="module")
def serving(authority, revoked, new_mosquitto, tmp_path_factory):
    """Starts brokers that have this certificate, want one of their clients, and know what the authority has revoked."""
    acl = tmp_path_factory.mktemp("acl") / "acl"
    acl.write_text(mosquitto_acl("default"))
    lines = (
        f"cafile {authority.certificate}",
        f"crlfile {authority.revoked()}",
        "require_certificate true",
        "use_identity_as_username true",
        f"acl_file {acl}",
    )
    with contextlib.ExitStack() as stack:

        def start(certificate: Path, key: Path) -> str:
            settings = "\n".join([f"certfile {certificate}", f"keyfile {key}", *lines])
            return f"mqtts://127.0.0.1:{stack.enter_context(new_mosquitto(settings)).port}"

        yield start


@pytest.fixture(scope="module")
def broker(authority, serving) -> str:
    url: str = serving(*authority.issue("broker"))
    return url


def client_of(trusted: Authority, identity: Identity | None = None) -> BrokerSettings:
    certificate, key = identity or (None, None)
    return BrokerSettings(ca_file=trusted.certificate, cert_file=certificate, key_file=key)


async def refusal(settings: BrokerSettings, url: str) -> str:
    """What the log says about a client that does not get in."""
    with pytest.raises(aiomqtt.MqttError) as refused:
        async with aiomqtt.Client(**connection_options(settings, url), timeout=3):
            pass
    text = await why_not_connected(refused.value, settings, url)
    gc.collect()
    return text


async def test_both_ends_prove_who_they_are(broker, authority):
    """With the authority's certificate and one of its own, a client gets in."""
    settings = client_of(authority, authority.issue("n1"))
    async with aiomqtt.Client(**connection_options(settings, broker), timeout=10) as client:
        await client.publish("hello", b"there", qos=1)


async def test_a_broker_of_another_authority_is_not_trusted(broker, authority, stranger):
    """The text says that it is the broker's certificate, and why."""
    text = await refusal(client_of(stranger, authority.issue("n1")), broker)
    assert text.startswith("the broker's certificate is not accepted: ")
    assert "self-signed certificate in certificate chain" in text


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"valid": PAST}, "certificate has expired"), ({"host": "elsewhere"}, "not valid for '127.0.0.1'")],
    ids=["expired", "of another host"],
)
async def test_a_broker_with_a_wrong_certificate_is_not_trusted(serving, authority, changes, words):
    """Once it has expired, or if it is another host's."""
    text = await refusal(client_of(authority, authority.issue("n1")), serving(*authority.issue("broker", **changes)))
    assert text.startswith("the broker's certificate is not accepted: ")
    assert words in text


@pytest.fixture(scope="module")
def wrong(authority, stranger, revoked) -> dict[str, Identity]:
    """Certificates of node n1 that no broker should take."""
    return {
        "expired": authority.issue("n1", valid=PAST),
        "not yet valid": authority.issue("n1", valid=FUTURE),
        "revoked": revoked,
        "of another authority": stranger.issue("n1"),
    }


@pytest.mark.parametrize(
    ("why", "alert"),
    [
        ("expired", "certificate expired"),
        ("not yet valid", "bad certificate"),
        ("revoked", "certificate revoked"),
        ("of another authority", "unknown ca"),
    ],
)
async def test_a_client_with_a_wrong_certificate_stays_out(broker, authority, wrong, why, alert):
    """The broker says why only after the handshake; the text repeats it, and names the file."""
    text = await refusal(client_of(authority, wrong[why]), broker)
    assert text == f"the broker refuses this client with the certificate {wrong[why][0]}: {alert}"


async def test_a_client_without_a_certificate_stays_out(broker, authority):
    """Knowing the authority is not enough."""
    text = await refusal(client_of(authority), broker)
    assert text == "the broker refuses this client without broker.cert_file: certificate required"


async def test_a_broker_that_is_away_refuses_nobody(authority, new_mosquitto):
    """The text says what the connection said, and blames no certificate."""
    with new_mosquitto() as gone:
        url = gone.url.replace("mqtt:", "mqtts:")
    text = await refusal(client_of(authority, authority.issue("n1")), url)
    assert "Connection refused" in text
    assert "certificate" not in text


async def test_an_agent_with_the_certificate_of_another_node_is_told(broker, authority, tmp_path, monkeypatch):
    """The broker takes its reports for node n1 and drops them; the agent's log says what is wrong."""
    monkeypatch.setattr(delivery, "PATIENCE_S", 0.2)
    certificate, key = authority.issue("n2")
    at = BrokerSettings(url=broker, ca_file=authority.certificate, cert_file=certificate, key_file=key)
    leader = client_of(authority, authority.issue(COORDINATOR))
    with structlog.testing.capture_logs() as logs, contextlib.closing(Outbox(tmp_path / "o.db", 100, "boot")) as outbox:
        link = AgentLink(Settings(node="n1", broker=at), outbox, AgentMetrics("n1"), lambda _: None, lambda _: None)
        link.announce(InventoryReport(sent_at=1.0, node="n1", inventory=Inventory(), checks=()))
        async with aiomqtt.Client(**connection_options(leader, broker)) as coordinator:
            await coordinator.subscribe(TOPICS.every_node(NodeTopic.REPORT), qos=1)
            presence = CoordinatorPresence(sent_at=time.time(), epoch=1, online=True)
            await coordinator.publish(TOPICS.coordinator, encode(presence), qos=1, retain=True)
            running = asyncio.create_task(link.run())
            run = outbox.append(
                Run(id="r", node="n1", check="light", verdict=Verdict.PASS, started_at=1.0, duration_s=0.0)
            )
            assert run is not None
            link.appended(run)
            async with asyncio.timeout(20):
                while not (told := [each for each in logs if each["event"] == "reports_not_acknowledged"]):
                    await asyncio.sleep(0.05)
            link.close()
            await running
            assert coordinator.messages is not None
            assert len(coordinator.messages) == 0
    assert "must be n1" in told[0]["hint"]


@pytest.mark.parametrize(
    ("usage", "verdict"),
    [("critical, keyCertSign, cRLSign", "OK"), ("critical, cRLSign", "invalid CA certificate"), (None, "key usage")],
)
def test_the_guides_command_tells_certificates_that_newer_pythons_refuse(tmp_path, usage, verdict):
    """Python 3.13 and newer refuse what `openssl verify -x509_strict` refuses; older ones accept it."""
    authority = Authority(tmp_path, "authority", usage)
    certificate, _ = authority.issue("broker")
    verify = ["openssl", "verify", "-x509_strict", "-CAfile", str(authority.certificate), str(certificate)]
    done = subprocess.run(verify, capture_output=True, text=True, timeout=60, check=False)
    assert verdict in done.stdout + done.stderr
    assert (done.returncode == 0) is (verdict == "OK")
