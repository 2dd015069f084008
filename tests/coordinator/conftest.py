"""A real coordinator in a process of its own, and nodes that speak to it over MQTT as agents do."""

import asyncio
import contextlib
import http.client
import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiomqtt
import pytest
from sqlalchemy import create_engine
from tests.muster_process import MusterProcess

from muster.check import CheckInfo, Needs, Scope, Worse
from muster.config import Settings
from muster.local_token import find_token
from muster.model import Device, Finding, Inventory, RankResult, Run, Severity, Verdict
from muster.mqtt import connection_options
from muster.wire.codec import COMMAND, decode, encode
from muster.wire.messages import (
    Accepted,
    Finished,
    InventoryReport,
    Join,
    Prepare,
    Presence,
    Ready,
    Report,
    RunCheck,
    Start,
)
from muster.wire.topics import NodeTopic, Topics
from muster_coordinator.store.migrations.upgrade import upgrade

TOPICS = Topics("default")
COMPARED = {"tflops": Worse.LOWER}
PARAMS = {"type": "object", "properties": {"size": {"type": "integer"}}, "additionalProperties": False}


class Coordinator:
    """`muster coordinator` on ports of its own. `log` is what it has logged so far."""

    def __init__(self, directory, **settings):
        self.settings = {
            "MUSTER_DATA_DIR": str(directory),
            "MUSTER_HTTP__LISTEN": "127.0.0.1:0",
            "MUSTER_BROKER__LISTEN": "127.0.0.1:0",
            "MUSTER_LOG__FORMAT": "json",
            **settings,
        }
        self.log = []
        self.process: Any = None

    def start(self):
        """Starts it and waits until it is ready; keeps its ports over restarts."""
        self.log.clear()
        assert self.begin().wait(90), self.log
        told = next((line for line in self.log if line.get("event") == "coordinator_ready"), None)
        assert told, self.log
        self.url, self.broker = told["api"], told["broker"]
        self.settings["MUSTER_HTTP__LISTEN"] = urlsplit(self.url).netloc
        self.settings["MUSTER_BROKER__LISTEN"] = urlsplit(self.broker).netloc

    def begin(self):
        """Starts it; the event is set when it leads, or has ended."""
        read, write = os.pipe()
        with os.fdopen(write, "wb") as stderr:
            self.process = MusterProcess("coordinator", env={**os.environ, **self.settings}, stderr=stderr)
        ready = threading.Event()
        threading.Thread(target=self._read, args=(os.fdopen(read, encoding="utf-8"), ready), daemon=True).start()
        return ready

    def _read(self, stderr, ready):
        for line in stderr:
            try:
                self.log.append(json.loads(line))
            except ValueError:
                self.log.append({"text": line})
            if self.log[-1].get("event") == "coordinator_ready":
                ready.set()
        stderr.close()
        ready.set()

    def end(self, number=signal.SIGTERM):
        """Sends a signal and gives the exit code and how long it took."""
        began = time.monotonic()
        self.process.send_signal(number)
        return self.process.wait(30), time.monotonic() - began

    @property
    def env(self):
        """Variables with which the command `muster` finds the coordinator and its token."""
        return {"MUSTER_URL": self.url, "MUSTER_DATA_DIR": self.settings["MUSTER_DATA_DIR"]}

    def ask(self, method, path, body=None, **headers):
        """The status and the JSON of an answer. Sends the coordinator's token if `headers` have no Authorization."""
        token = find_token(Path(self.settings["MUSTER_DATA_DIR"]), self.url)
        headers.setdefault("Authorization", f"Bearer {token}")
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=20)
        try:
            if body is not None:
                headers.setdefault("Content-Type", "application/json")
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def get(self, path):
        status, answer = self.ask("GET", path)
        assert status == 200, answer
        return answer


@contextlib.contextmanager
def running_coordinator(directory, **settings):
    """A coordinator with an embedded broker that is ready, while the context lasts."""
    running = Coordinator(directory, **settings)
    try:
        running.start()
        yield running
    finally:
        if running.process.poll() is None:
            running.end(signal.SIGKILL)


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory):
    """The file of a database after all migrations: they cost more than most tests that need an empty one."""
    file = tmp_path_factory.mktemp("database") / "muster.db"
    engine = create_engine(f"sqlite:///{file}")
    with engine.begin() as connection:
        upgrade(connection)
    engine.dispose()
    return file


@pytest.fixture
def data_dir(tmp_path, empty_database):
    """A data directory with an empty database."""
    shutil.copy(empty_database, tmp_path)
    return tmp_path


@pytest.fixture
def more_settings():
    """Settings of the coordinator beside those that every test needs, as environment variables."""
    return {}


@pytest.fixture
def coordinator(tmp_path, empty_database, more_settings):
    """A coordinator with an embedded broker that is ready."""
    directory = tmp_path / "coordinator"
    directory.mkdir(mode=0o700)
    shutil.copy(empty_database, directory)
    with running_coordinator(directory, **more_settings) as running:
        yield running


class Node:
    """What an agent looks like from the coordinator: it joins groups, runs checks at once, keeps what is not acked."""

    def __init__(self, name, *, verdict=Verdict.PASS, objective=10.0, finishes=True, devices=1):
        self.name = name
        self.devices = devices
        self.verdict = verdict
        self.objective = objective
        self.finishes = finishes
        self.kept = []
        self.seq = 0
        self.known = asyncio.Event()
        self._ranks = {}

    async def run(self, url):
        options = connection_options(Settings().broker, url)
        async with aiomqtt.Client(**options, identifier=f"node-{self.name}") as self._client:
            await self._client.subscribe(TOPICS.node(self.name, NodeTopic.COMMAND), qos=1)
            await self._client.subscribe(TOPICS.node(self.name, NodeTopic.ACK), qos=1)
            await self._say(NodeTopic.INVENTORY, self._inventory(), retain=True)
            await self.come()
            await self.send_report()
            self.known.set()
            async for message in self._client.messages:
                if message.topic.matches("+/+/+/node/+/ack"):
                    through = json.loads(message.payload)["stored_through"]
                    self.kept = [run for run in self.kept if run.seq > through]
                else:
                    await self._obey(decode(message.payload, COMMAND))

    async def come(self):
        """A heartbeat."""
        await self._say(NodeTopic.PRESENCE, Presence(sent_at=time.time(), node=self.name, online=True), retain=True)

    async def leave(self):
        """Has the broker say that its connection has ended."""
        offline = Presence(sent_at=time.time(), node=self.name, online=False, goodbye=True)
        await self._say(NodeTopic.PRESENCE, offline, retain=True)

    async def report(self, check, verdict=None, **values):
        """Keeps a run until it is acknowledged, and sends all that is kept."""
        self.seq += 1
        verdict = verdict or self.verdict
        finding = Finding(code=f"{check}.bad", summary="it is bad", severity=Severity.ERROR)
        said = {
            "id": f"{self.name}-{self.seq}",
            "metrics": {"busbw_gbps": self.objective},
            "findings": (finding,) if verdict == Verdict.FAIL else (),
        }
        run = Run(
            node=self.name, check=check, verdict=verdict, started_at=time.time(), duration_s=0.1, seq=self.seq,
            **said | values,
        )  # fmt: skip
        self.kept.append(run)
        await self.send_report()

    async def send_report(self):
        if self.kept:
            report = Report(sent_at=time.time(), node=self.name, stream=self.name, after=0, runs=tuple(self.kept))
            await self._say(NodeTopic.REPORT, report)

    async def _obey(self, command):
        said = {"sent_at": time.time(), "node": self.name}
        match command:
            case RunCheck(run=run, check=check, cause=cause):
                await self.report(check, id=run, cause=cause)
            case Join(group=group):
                reply = Accepted(**said, group=group, address="127.0.0.1", port=5000, ranks=1)
                await self._say(NodeTopic.GROUP, reply)
            case Prepare(group=group, first_rank=rank):
                self._ranks[group] = rank
                await self._say(NodeTopic.GROUP, Ready(**said, group=group))
            case Start(group=group) if self.finishes:
                await self.report("collective", group=group, cause=group)
                await self._say(NodeTopic.GROUP, Finished(**said, group=group, ranks=(self._result(group),)))

    def _result(self, group):
        metrics = {"busbw_gbps": self.objective}
        findings = self.kept[-1].findings
        return RankResult(
            rank=self._ranks[group], verdict=self.verdict, findings=findings, metrics=metrics, duration_s=0.1
        )

    def _inventory(self):
        devices = tuple(
            Device(index=index, uuid=f"{self.name}-{index}", model="Stand-in", simulated=True)
            for index in range(self.devices)
        )
        common: dict[str, Any] = {"summary": "", "cadence_s": None, "timeout_s": 60.0, "params": PARAMS}
        checks = (
            CheckInfo(name="gemm", scope=Scope.NODE, needs=Needs.NOTHING, objective=None, compared=COMPARED, **common),
            CheckInfo(name="nvml", scope=Scope.NODE, needs=Needs.NOTHING, objective=None, **common),
            CheckInfo(name="collective", scope=Scope.GROUP, needs=Needs.NOTHING, objective="busbw_gbps", **common),
        )
        return InventoryReport(sent_at=time.time(), node=self.name, inventory=Inventory(devices=devices), checks=checks)

    async def _say(self, topic, message, retain=False):
        await self._client.publish(TOPICS.node(self.name, topic), encode(message), qos=1, retain=retain)


@contextlib.asynccontextmanager
async def connected(coordinator, *names, kind=Node, **settings):
    """Nodes that the coordinator knows, by name."""
    them = {name: kind(name, **settings) for name in names}
    async with asyncio.timeout(60):
        while coordinator.ask("GET", "/readyz")[0] != 200:  # what nodes say before it listens, it never hears
            await asyncio.sleep(0.02)
    tasks = [asyncio.create_task(node.run(coordinator.broker), name=node.name) for node in them.values()]
    async with asyncio.timeout(60):
        for name, node in them.items():
            await node.known.wait()
            while coordinator.ask("GET", f"/api/v1/nodes/{name}")[0] != 200:
                await asyncio.sleep(0.02)
    yield them
    await _end(tasks)


@pytest.fixture
def nodes():
    """Gives a context of nodes that the coordinator knows, by name."""
    return connected


async def _end(tasks):
    """Cancels until it helps: before Python 3.12, a wait inside aiomqtt forgets what comes together with its answer."""
    pending = set(tasks)
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=1)


@pytest.fixture
def eventually():
    """Waits until a condition gives something true, and gives that."""

    async def wait(condition, deadline_s=30.0):
        async with asyncio.timeout(deadline_s):
            while not (found := condition()):
                await asyncio.sleep(0.02)
            return found

    return wait
