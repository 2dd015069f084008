"""Two coordinators of one fleet: the one with the newer epoch leads, and the other stops publishing."""

import asyncio
import contextlib
import http.client
import time
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import aiomqtt
import pytest
import structlog
from tests.brokers import docker_settings, write_passwords
from tests.faults.parts import Part
from tests.waiting import wait_for

from muster.config import BrokerSettings, Settings
from muster.wire.codec import COORDINATOR, decode, encode
from muster.wire.messages import CoordinatorPresence
from muster.wire.topics import Topics
from muster_coordinator.runtime.link import CoordinatorLink

TOPIC = Topics("default").coordinator
OLDER, NEWER = 7, 8


@pytest.fixture(scope="module")
def broker(tmp_path_factory, new_mosquitto, mosquitto_program):
    """The settings of the coordinators' account at a broker where an account has one connection."""
    directory = tmp_path_factory.mktemp("accounts")
    write_passwords(directory / "passwords", {"coordinator": "c", "n1": "c"})
    (directory / "password").write_text("c")
    with new_mosquitto(docker_settings(directory / "passwords"), mosquitto_program) as running:
        yield BrokerSettings(url=running.url, username="coordinator", password_file=directory / "password")


class Coordinator:
    """The link of a coordinator, which runs."""

    def __init__(self, broker: BrokerSettings, epoch: int, api_url: str = "http://a") -> None:
        async def ignore(_events):
            pass

        url = broker.url or ""
        self.link = CoordinatorLink(
            Settings(broker=broker),
            broker_url=url,
            api_url=api_url,
            epoch=epoch,
            deliver=ignore,
            known=tuple,
            is_known=lambda _node, _head: False,
            has_inventory=lambda _node, _digest: False,
            clock=time.time,
        )
        self.task = asyncio.create_task(self.link.run())


@contextlib.asynccontextmanager
async def started(broker: BrokerSettings) -> AsyncIterator[list[Coordinator]]:
    """A list of coordinators; all end with the context."""
    coordinators: list[Coordinator] = []
    try:
        yield coordinators
    finally:
        for each in coordinators:
            while not each.task.done():  # before Python 3.12, a wait inside aiomqtt may forget that it was cancelled
                each.task.cancel()
                await asyncio.wait([each.task], timeout=1)


@pytest.fixture(autouse=True)
def quick_heartbeats(monkeypatch):
    monkeypatch.setattr("muster_coordinator.runtime.link.HEARTBEAT_S", 0.2)


async def eventually(condition) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.01)


async def received(broker: BrokerSettings, count: int) -> list[tuple[int, bool]]:
    """Epoch and `online` of the next messages that an agent gets on the coordinator's topic."""
    port = int((broker.url or "").rpartition(":")[2])
    async with aiomqtt.Client("127.0.0.1", port, username="n1", password="c") as agent:
        await agent.subscribe(TOPIC, qos=1)
        heard = [decode((await anext(agent.messages)).payload, COORDINATOR) for _ in range(count)]
    return [(message.epoch, message.online) for message in heard]


@pytest.mark.parametrize("epochs", [(OLDER, NEWER), (NEWER, OLDER)], ids=["newer comes", "older comes"])
async def test_with_one_account_the_newer_one_leads(broker, epochs):
    """They do not end each other's connection for ever: the older one stops, and logs the reason once."""
    with structlog.testing.capture_logs() as lines:
        async with started(broker) as coordinators:
            for epoch in epochs:
                coordinators.append(Coordinator(broker, epoch))
                await eventually(lambda: coordinators[-1].link.connected or coordinators[-1].task.done())
            newer, older = (coordinators[epochs.index(epoch)] for epoch in (NEWER, OLDER))
            await eventually(older.task.done)
            await eventually(lambda: newer.link.connected)
            assert not older.link.connected
            assert await received(broker, 1) == [(NEWER, True)]
            assert newer.link.connected
    (line,) = [line for line in lines if line["event"] == "coordinator_superseded"]
    assert (line["epoch"], line["newer_epoch"]) == (OLDER, NEWER)
    assert len([line for line in lines if line["event"] == "broker_away"]) <= 3


async def test_what_is_kept_of_a_predecessor_is_replaced(mosquitto):
    """Its last will may come late. Agents would take the fleet for one without a coordinator."""
    broker = BrokerSettings(url=mosquitto.url)
    offline = CoordinatorPresence(sent_at=1.0, online=False, epoch=OLDER, url="http://a")
    async with started(broker) as coordinators, aiomqtt.Client("127.0.0.1", mosquitto.port) as other:
        coordinators.append(Coordinator(broker, NEWER))
        await eventually(lambda: coordinators[0].link.connected)
        for payload in (encode(offline), b""):
            await other.publish(TOPIC, payload, qos=1, retain=True)
            while (await received(broker, 1))[0] != (NEWER, True):
                await asyncio.sleep(0.05)


async def test_of_two_with_the_same_epoch_the_later_one_leads(broker):
    """Two coordinators that start in the same second have the same epoch."""
    async with started(broker) as coordinators:
        for api_url in ("http://a", "http://b"):
            coordinators.append(Coordinator(broker, NEWER, api_url))
            await eventually(lambda: coordinators[-1].link.connected or coordinators[-1].task.done())
        await eventually(coordinators[0].task.done)
        await eventually(lambda: coordinators[1].link.connected)


async def test_without_accounts_the_older_one_stops_too(mosquitto):
    """The retained message is that of the newer coordinator."""
    broker = BrokerSettings(url=mosquitto.url)
    async with started(broker) as coordinators:
        for epoch in (OLDER, NEWER):
            coordinators.append(Coordinator(broker, epoch))
            await eventually(lambda: coordinators[-1].link.connected)
        await eventually(coordinators[0].task.done)
        assert await received(broker, 1) == [(NEWER, True)]
        assert coordinators[1].link.connected


def is_ready(coordinator: Part) -> bool:
    api = urlsplit(coordinator.logged("coordinator_ready")["api"]).netloc
    with contextlib.closing(http.client.HTTPConnection(api, timeout=20)) as connection:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200


def test_of_two_processes_the_later_one_leads(broker, tmp_path):
    """The earlier one keeps running, is not ready, and can still be stopped."""
    parts = []
    try:
        for name in ("earlier", "later"):
            settings = {
                "data_dir": str(tmp_path / name),
                "broker": {**broker.model_dump(mode="json", include={"url", "username", "password_file"})},
                "http": {"listen": "127.0.0.1:0"},
            }
            parts.append(Part("coordinator", tmp_path / f"{name}.log", settings, {}))
            parts[-1].start()
            wait_for(lambda: is_ready(parts[-1]), f"the {name} one to be ready")
            # Epochs are seconds: of two that start in the same second, the URL and not the order decides who leads.
            wait_for(lambda: time.time() >= parts[-1].logged("coordinator_ready")["epoch"] + 1, "the next second")
        earlier, later = parts
        earlier.logged("coordinator_superseded")
        wait_for(lambda: not is_ready(earlier), "the earlier one to say so")
        wait_for(lambda: is_ready(later), "the later one to be ready")
        assert later.log("coordinator_superseded") == []
        assert earlier.stop() == 0
    finally:
        for part in parts:
            if part.runs:
                part.kill()
