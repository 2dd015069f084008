"""What a real agent of a node with eight GPUs and eight ports says, for simulated agents to repeat.

A real `muster agent` runs once with NVIDIA's library as the tests' stub and the ports as files that look like sysfs,
all plugins and cadences as shipped. Its inventory and the first run of each background check that needs no idle node
are kept.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import aiomqtt
from benchmarks.agent_at_rest import stubbed_nvml
from benchmarks.fleet import Fleet, mosquitto

from muster.check import Needs
from muster.errors import Unavailable
from muster.model import Run, Verdict
from muster.wire import codec
from muster.wire.messages import InventoryReport
from muster.wire.topics import NodeTopic, Topics
from muster_plugins.checks.fabric.counters import COUNTERS

NODE = "node-1"
RECORDED_WITHIN_S = 90.0
DEVICES = 8
ANYBODY = "+"


@dataclass(frozen=True, slots=True)
class Template:
    """The inventory of a node, and by check the run to repeat and its interval in seconds."""

    inventory: InventoryReport
    checks: dict[str, tuple[Run, float]]

    def inventory_of(self, node: str) -> InventoryReport:
        """The inventory as that of another node, whose devices have serial numbers of their own."""
        recorded = self.inventory.inventory.devices
        devices = tuple(each.model_copy(update={"uuid": f"GPU-{node}-{each.index}"}) for each in recorded)
        inventory = self.inventory.inventory.model_copy(update={"devices": devices})
        return self.inventory.model_copy(update={"node": node, "sent_at": time.time(), "inventory": inventory})

    @classmethod
    def read(cls, file: Path) -> Self:
        """The template in a file."""
        stored = json.loads(file.read_text(encoding="utf-8"))
        checks = {run["check"]: (Run.model_validate(run), interval_s) for run, interval_s in stored["checks"]}
        return cls(InventoryReport.model_validate(stored["inventory"]), checks)

    def write(self, file: Path) -> None:
        """Writes the template to a file."""
        checks = [(run.model_dump(mode="json"), interval_s) for run, interval_s in self.checks.values()]
        stored: dict[str, Any] = {
            "inventory": self.inventory.model_dump(mode="json", by_alias=True),
            "checks": checks,
        }
        file.write_text(json.dumps(stored), encoding="utf-8")


async def recorded(directory: Path) -> Template:
    """What a real agent says, with a broker of its own; also written to `template.json`."""
    place = directory / "recorded"
    place.mkdir()
    async with mosquitto(place) as broker:
        template = await record(place, broker)
    template.write(directory / "template.json")
    return template


async def record(directory: Path, broker: str) -> Template:
    """Starts a real agent with a coordinator of its own, and returns what it says."""
    variables = stubbed_nvml(directory, DEVICES)
    settings = {
        "agent": {"spread_s": 0},  # each check runs at once
        "plugins": {"fabric": {"sysfs_root": str(ports(directory)), "proc_root": str(directory)}},
    }
    host, port = broker.removeprefix("mqtt://").split(":")
    async with Fleet(directory, broker) as fleet, aiomqtt.Client(host, int(port)) as client:
        await client.subscribe(Topics("default").every_node(NodeTopic.REPORT), qos=1)
        await client.subscribe(Topics("default").every_node(NodeTopic.INVENTORY), qos=1)
        await fleet.start_agents(NODE, settings=settings, variables=variables)
        try:
            async with asyncio.timeout(RECORDED_WITHIN_S):
                return await _heard(client.messages)
        except TimeoutError:
            raise Unavailable(f"the recorded agent has not run each check within {RECORDED_WITHIN_S:g} s") from None


async def _heard(messages: AsyncIterator[aiomqtt.Message]) -> Template:
    """The template, once each background check that needs no idle node has run."""
    inventory: InventoryReport | None = None
    runs: dict[str, Run] = {}
    async for message in messages:
        assert isinstance(message.payload, bytes)
        payload = message.payload
        if message.topic.value.endswith(NodeTopic.INVENTORY):
            inventory = codec.decode(payload, codec.INVENTORY)
        else:
            for run in codec.decode(payload, codec.REPORT).runs:
                runs.setdefault(run.check, run)
        if inventory is None or not inventory.inventory.devices:
            continue
        cadences = {
            check.name: check.cadence_s
            for check in inventory.checks
            if check.cadence_s and check.needs is Needs.NOTHING
        }
        if cadences.keys() <= runs.keys():
            return Template(inventory, {name: (_healthy(runs[name]), cadences[name]) for name in cadences})
    raise Unavailable("the broker has gone")


def _healthy(run: Run) -> Run:
    """The run without the findings about this host, which may have an unsynchronised clock."""
    return run.model_copy(update={"findings": (), "verdict": Verdict.PASS})


def ports(directory: Path) -> Path:
    """A tree that looks like the sysfs of a node with as many InfiniBand ports as devices."""
    root = directory / "sys"
    for number in range(DEVICES):
        port = root / f"class/infiniband/mlx5_{number}/ports/1"
        net = root / f"class/net/ib{number}"
        for folder in (port / "counters", port / "hw_counters", net):
            folder.mkdir(parents=True)
        (root / f"class/infiniband/mlx5_{number}/device/net/ib{number}").mkdir(parents=True)
        values = {
            "rate": "400 Gb/sec (4X NDR)",
            "link_layer": "InfiniBand",
            "state": "4: ACTIVE",
            "phys_state": "5: LinkUp",
        }
        for name, value in values.items():
            (port / name).write_text(f"{value}\n")
        (net / "dev_port").write_text("0\n")
        for name, counter in COUNTERS.items():
            (net if counter.folder == "net" else port / counter.folder).joinpath(name).write_text("0\n")
    return root
