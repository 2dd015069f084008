"""The agent as a process: with a real broker, real children and real signals."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiomqtt
import psutil
import pytest
from tests.muster_process import AnyProcess, start_muster
from tests.waiting import wait_for

from muster.references import Reference
from muster.wire import codec
from muster.wire.messages import Abort, Join, Message, Prepare, References, RunCheck, Start
from muster.wire.topics import ROOT, NodeTopic, Topics

TOPICS = Topics("default")


@dataclass
class Agent:
    """A started agent: its process and its log."""

    process: AnyProcess
    log: Path

    def logged(self, event: str) -> Any:
        """The first line of that event, once it is there."""
        return wait_for(lambda: next((line for line in self._lines() if line["event"] == event), None), event)

    def _lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def fetch(self, path: str) -> Any:
        with urllib.request.urlopen(self.logged("agent_started")["endpoint"] + path, timeout=10) as answer:
            return answer.read().decode()

    def family(self) -> list[psutil.Process]:
        process = psutil.Process(self.process.pid)
        return [process, *process.children(recursive=True)]

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=20)


@pytest.fixture
def started(tmp_path, mosquitto) -> Iterator[Callable[..., Agent]]:
    """Starts agents with simulated devices; `started(text)` adds to the settings. All are killed at the end."""
    agents: list[Agent] = []

    def start(more: str = "", env: dict[str, str] | None = None) -> Agent:
        settings = tmp_path / f"muster-{len(agents)}.toml"
        settings.write_text(
            f'node = "n"\ndata_dir = "{tmp_path}/data"\nbroker.url = "{mosquitto.url}"\nlog.format = "json"\n'
            f'agent.listen = "127.0.0.1:0"\nplugins.simulated = {{ enabled = true, devices = 2 }}\n'
            f'plugins.disabled = ["cloud", "dmi"]\n{more}'
        )
        log = tmp_path / f"log-{len(agents)}"
        with log.open("wb") as lines:
            process = start_muster("agent", "--config", str(settings), env={**os.environ, **(env or {})}, stderr=lines)
        agents.append(Agent(process, log))
        return agents[-1]

    yield start
    for agent in agents:
        agent.process.kill()
        agent.process.wait()


@dataclass
class Coordinator:
    """Speaks to the node and hears what it says."""

    client: aiomqtt.Client

    async def order(self, kind: type[Message], **fields: Any) -> None:
        now = time.time()
        command = kind(sent_at=now, epoch=1, expires_at=now + 20, **fields)
        await self.client.publish(TOPICS.node("n", NodeTopic.COMMAND), codec.encode(command), qos=1)

    async def heard(self, topic: NodeTopic, wanted: Callable[[Any], Any]) -> Any:
        """The first true answer of `wanted` about a message on a topic."""
        async with asyncio.timeout(30):
            async for message in self.client.messages:
                node, kind = TOPICS.parse_node(message.topic.value)
                if kind is topic and (answer := wanted(codec.decode_from_node(kind, node, message.payload))):
                    return answer
        raise AssertionError("the broker is gone")

    async def reply(self, kind: str) -> Any:
        return await self.heard(NodeTopic.GROUP, lambda reply: reply if reply.kind == kind else None)

    async def run(self, wanted: Callable[[Any], bool]) -> Any:
        return await self.heard(NodeTopic.REPORT, lambda report: next(filter(wanted, report.runs), None))


@contextlib.asynccontextmanager
async def coordinating(broker):
    async with aiomqtt.Client("127.0.0.1", broker.port) as client:
        await client.subscribe(f"{ROOT}/default/node/+/+", qos=1)
        yield Coordinator(client)


async def test_it_reports_and_ends_in_time_with_nothing_left(started, mosquitto):
    """From the first report to the last word, with the supervisor told."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(f"\0muster-test-{os.getpid()}")
        supervisor.settimeout(30)
        async with coordinating(mosquitto) as coordinator:
            agent = started("checks.simulated.interval_s = 0.2", env={"NOTIFY_SOCKET": f"@muster-test-{os.getpid()}"})
            # The inventory first: it is said once, and runs again and again until they are acknowledged.
            inventory = await coordinator.heard(NodeTopic.INVENTORY, lambda message: message)
            plugins = await coordinator.run(lambda run: run.check == "plugins")
            assert plugins.verdict == "PASS"
            assert len(inventory.inventory.devices) == 2
            assert "simulated" in {check.name for check in inventory.checks}
            simulated = await coordinator.run(lambda run: run.check == "simulated")
            assert (simulated.verdict, simulated.simulated, simulated.cause) == ("PASS", True, "schedule")
            assert supervisor.recv(100) == b"READY=1"
            assert json.loads(agent.fetch("/healthz"))["broker_connected"] is True
            assert 'muster_agent_runs_total{check="simulated",verdict="PASS"}' in agent.fetch("/metrics")
            family = agent.family()
            assert len(family) >= 3
            began = time.monotonic()
            assert agent.end() == 0
            assert time.monotonic() - began < 5
            assert supervisor.recv(100) == b"STOPPING=1"
            assert wait_for(lambda: not any(process.is_running() for process in family), "its processes to end")
            await coordinator.heard(NodeTopic.PRESENCE, lambda presence: not presence.online)


async def test_a_run_is_done_on_request(started, mosquitto):
    """With the id, the parameters' defaults and the cause of the request."""
    async with coordinating(mosquitto) as coordinator:
        started()
        await coordinator.heard(NodeTopic.INVENTORY, bool)
        await coordinator.order(RunCheck, run="asked", check="simulated", cause="somebody")
        run = await coordinator.run(lambda run: run.id == "asked")
        assert (run.verdict, run.cause) == ("PASS", "somebody")
        await coordinator.order(RunCheck, run="wrong", check="simulate")
        run = await coordinator.run(lambda run: run.id == "wrong")
        assert (run.verdict, run.findings[0].code) == ("UNKNOWN", "run.refused")


async def test_a_group_of_one_goes_the_whole_way(started, mosquitto):
    """Invited, prepared, let go and finished; afterwards the node is free for the next."""
    async with coordinating(mosquitto) as coordinator:
        agent = started()
        await coordinator.heard(NodeTopic.INVENTORY, bool)
        for group in ("g1", "g2"):
            await coordinator.order(Join, group=group, check="simulated", timeout_s=20)
            accepted = await coordinator.reply("accepted")
            place = {"master_addr": accepted.address, "master_port": accepted.port}
            await coordinator.order(Prepare, group=group, first_rank=0, world_size=accepted.ranks, **place)
            await coordinator.reply("ready")
            await coordinator.order(Start, group=group)
            finished = await coordinator.reply("finished")
            assert [rank.verdict for rank in finished.ranks] == ["PASS"]
            run = await coordinator.run(lambda run, group=group: run.group == group)
            assert run.cause == group
            wait_for(lambda: json.loads(agent.fetch("/healthz"))["running"] == [], "runs to end")
            with socket.create_server((accepted.address, accepted.port)):
                pass


async def test_an_aborted_group_gives_its_port_back(started, mosquitto):
    """Whoever was invited and is let off holds nothing."""
    async with coordinating(mosquitto) as coordinator:
        started()
        await coordinator.heard(NodeTopic.INVENTORY, bool)
        await coordinator.order(Join, group="g", check="simulated", timeout_s=20)
        accepted = await coordinator.reply("accepted")
        await coordinator.order(Abort, group="g", reason="enough")
        await coordinator.order(Join, group="h", check="simulated", timeout_s=20)
        await coordinator.reply("accepted")
        with socket.create_server((accepted.address, accepted.port)):
            pass


def test_the_end_of_the_launcher_is_the_end_of_the_agent(started):
    """Loudly, so that the supervisor starts both again."""
    agent = started()
    agent.logged("agent_started")
    family = agent.family()
    launcher = next(process for process in family if process.ppid() == agent.process.pid)
    launcher.kill()
    assert agent.process.wait(timeout=20) not in (0, 64, 69)
    assert agent.logged("launcher_lost")
    assert wait_for(lambda: not any(process.is_running() for process in family), "its processes to end")


def test_it_ends_in_time_although_its_children_do_not(started, tmp_path):
    """Stopped while one is asked for the inventory, with a reservation to give back, and none can be killed."""
    asked = tmp_path / "asked"
    (tmp_path / "sitecustomize.py").write_text(
        "import pathlib, time\n"
        "from muster_agent.runs import child, process_control\n"
        "process_control.kill = lambda _pids: None\n"
        f"child._contributed = lambda *_: (pathlib.Path({str(asked)!r}).touch(), time.sleep(600))\n"
    )
    agent = started(f'plugins.reservation_file.path = "{tmp_path}/reserved"', env={"PYTHONPATH": str(tmp_path)})
    wait_for(asked.exists, "the question")
    began = time.monotonic()
    assert agent.end() == 0
    assert time.monotonic() - began < 5


def test_a_bug_is_the_end_of_the_agent(started, tmp_path):
    """A callback that raises ends it with exit code 70; nobody would do what that should have done."""
    (tmp_path / "sitecustomize.py").write_text(
        "from muster_agent.decide.node import NodeAgent\n"
        "tick = NodeAgent._tick\n"
        "NodeAgent._tick = lambda node, event, now: tick(node, event, now) / 0\n"
    )
    agent = started("checks.simulated.interval_s = 0.2", env={"PYTHONPATH": str(tmp_path)})
    assert agent.process.wait(timeout=20) == 70
    assert "TypeError" in agent.log.read_text()


def test_a_killed_agent_leaves_nothing_behind(started):
    """The launcher and the resident child end with it."""
    agent = started()
    agent.logged("broker_connected")
    family = wait_for(lambda: agent.family() if len(agent.family()) >= 3 else None, "its children")
    agent.end(signal.SIGKILL)
    assert wait_for(lambda: not any(process.is_running() for process in family), "its processes to end")


def test_it_runs_without_a_broker(started, mosquitto):
    """Checks go on, results are kept."""
    mosquitto.stop()
    agent = started("checks.simulated.interval_s = 0.2")
    agent.logged("broker_not_connected")
    wait_for(lambda: json.loads(agent.fetch("/healthz"))["outbox"] >= 3, "runs to be kept")
    assert agent.end(signal.SIGINT) == 0


def test_a_second_agent_with_the_same_data_is_refused(started):
    """The message says what to do."""
    started().logged("agent_started")
    second = started()
    assert second.process.wait(timeout=20) == 69
    assert "another agent uses" in second.log.read_text()


def test_a_data_dir_that_cannot_be_used_is_refused(started, tmp_path):
    """The message names the setting."""
    tmp_path.joinpath("data").write_text("a file where the directory should be")
    agent = started()
    assert agent.process.wait(timeout=20) == 69
    log = agent.log.read_text()
    assert f"cannot use {tmp_path}/data" in log
    assert "data_dir" in log
    assert "Traceback" not in log


def test_a_plugin_that_failed_is_reported(started, mosquitto, tmp_path):
    """As an UNKNOWN run of the pseudo check `plugins`, never as silence; its checks may stand in the settings."""
    package = tmp_path / "broken-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[muster]\nbroken = no_such_module\n")
    agent = started("checks.of_the_broken_plugin.interval_s = 60", env={"PYTHONPATH": str(tmp_path)})
    ended = agent.logged("run_ended")
    assert (ended["check"], ended["verdict"], ended["findings"]) == ("plugins", "UNKNOWN", ["plugins.failed"])


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ("checks.simulate.interval_s = 5", 64, "did you mean 'simulated'"),
        ("checks.simulated.params = { colour = 1 }", 64, "colour"),
        ("broker.password_file = '/nowhere'", 64, "broker.password_file"),
    ],
)
def test_wrong_settings_are_refused_at_the_start(started, settings, code, words):
    """In one line that says what would be right."""
    agent = started(settings)
    assert agent.process.wait(timeout=20) == code
    log = agent.log.read_text()
    assert words in log
    assert "Traceback" not in log


async def test_of_equal_references_its_own_go_before_those_of_the_fleet(started, mosquitto, tmp_path):
    """A more specific one of the fleet goes before both; each holds from the next run on."""

    async def judged_by(run, **when):
        row = {"check": "simulated", "metric": "temperature_headroom_c", "fail_below": 1000, "source": "fleet"}
        said = References(sent_at=1.0, rows=(Reference.model_validate({**row, "when": when}),))
        await coordinator.client.publish(TOPICS.references, codec.encode(said), qos=1, retain=True)
        await coordinator.order(RunCheck, run=run, check="simulated")
        ended = await coordinator.run(lambda it: it.id == run)
        return {finding.evidence["source"] for finding in ended.findings}

    (tmp_path / "references.toml").write_text(
        '[[reference]]\ncheck = "simulated"\nmetric = "temperature_headroom_c"\nfail_below = 1000\nsource = "own"\n'
    )
    async with coordinating(mosquitto) as coordinator:
        agent = started("", {"MUSTER_REFERENCES_FILE": str(tmp_path / "references.toml")})
        agent.logged("broker_connected")
        assert await judged_by("r1", simulated=True) == {"fleet"}
        assert await judged_by("r2") == {"own"}


OF_A4 = """
[[reference]]
check = "simulated"
metric = "temperature_headroom_c"
when = { machine_type = "a4-highgpu-8g" }
fail_below = 1000
source = "a test"
"""


async def test_a_label_chooses_the_references_of_an_agent(started, mosquitto, tmp_path):
    """The inventory says which one it was, and the next run is judged by the references of this machine type."""
    (tmp_path / "labels").write_text('node.kubernetes.io/instance-type="a4-highgpu-8g"\n')
    (tmp_path / "references.toml").write_text(OF_A4)
    async with coordinating(mosquitto) as coordinator:
        started(
            f'checks.simulated.interval_s = 0.2\nreferences_file = "{tmp_path}/references.toml"\n'
            f'agent.labels_file = "{tmp_path}/labels"'
        )
        said = await coordinator.heard(NodeTopic.INVENTORY, lambda message: message.inventory)
        assert (said.machine_type, said.waiting_references) == ("a4-highgpu-8g", ())
        assert [(each.source, each.said_by) for each in said.machine_types] == [
            ("label", "node.kubernetes.io/instance-type")
        ]
        run = await coordinator.run(lambda run: run.check == "simulated")
        assert (run.verdict, run.facts["machine_type"]) == ("FAIL", "a4-highgpu-8g")


async def test_references_of_the_fleet_that_wait_for_the_machine_type_are_announced(started, mosquitto):
    """Also those that the operator sets later: the inventory is sent again with them."""
    row = Reference.model_validate(
        {
            "check": "simulated",
            "metric": "temperature_headroom_c",
            "when": {"machine_type": "ours"},
            "fail_below": 1000,
            "source": "a test",
        }
    )
    async with coordinating(mosquitto) as coordinator:
        started()
        said = await coordinator.heard(NodeTopic.INVENTORY, lambda message: message.inventory)
        assert (said.machine_type, said.waiting_references) == (None, ())
        message = codec.encode(References(sent_at=1.0, rows=(row,)))
        await coordinator.client.publish(TOPICS.references, message, qos=1, retain=True)
        waiting = await coordinator.heard(NodeTopic.INVENTORY, lambda message: message.inventory.waiting_references)
        assert waiting == ("simulated temperature_headroom_c (ours)",)
