"""What `muster doctor agent` looks at: the agent's way to the coordinator, its disk, and its devices."""

import os
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from muster.config import Settings
from muster.doctor.broker import keeps_apart, way_to_broker
from muster.doctor.certificates import certificates
from muster.doctor.clock import clock
from muster.doctor.disk import disk
from muster.doctor.process import answer_of
from muster.doctor.setup_finding import SetupFinding
from muster.model import Inventory, Verdict
from muster.nouns import count
from muster.plugins import Plugins, collect_checks
from muster.wire.topics import client_id
from muster_agent.acceptance.local_runner import local_runner
from muster_agent.runs.launcher import Launcher, launch

RUN_BYTES = 10_000
"""What a run takes in the outbox at most, but for a few large ones."""


async def examine(settings: Settings, plugins: Plugins) -> AsyncIterator[SetupFinding]:
    """All that the agent of this node needs. A running agent is not disturbed."""
    with launch(plugins, collect_checks(plugins)) as launcher:  # forks, which only a process without threads may do
        async for finding in _examined(settings, launcher):
            yield finding


async def _examined(settings: Settings, launcher: Launcher) -> AsyncIterator[SetupFinding]:
    running = answer_of(settings.agent.listen, "/healthz")
    yield _of_agent(settings.agent.listen, running)
    broker = settings.broker
    for finding in certificates(broker, broker.agent_url, time.time()):
        yield finding
    async for finding in way_to_broker(
        broker,
        settings.fleet,
        settings.node,
        lambda account: (keeps_apart(account, settings.node),),
        is_connected=(running or {}).get("broker_connected") is True,
        identifier=client_id(settings.fleet, settings.node),
    ):
        yield finding
    yield clock()
    yield disk(settings.data_dir, settings.agent.outbox_limit * RUN_BYTES, "the outbox")
    yield await _devices(settings, launcher)


def _of_agent(listen: str, health: Mapping[str, Any] | None) -> SetupFinding:
    if health is None:
        text = f"no agent answers at {listen}; start it when the rest is well"
        return SetupFinding("agent", Verdict.WARN, text)
    if health.get("broker_connected") is not True:
        return SetupFinding("agent", Verdict.WARN, "it runs, and is not connected to the broker; its log says why")
    return SetupFinding("agent", Verdict.PASS, "it runs, and is connected to the broker")


async def _devices(settings: Settings, launcher: Launcher) -> SetupFinding:
    """The devices that the plugins find, as an agent asks them: in a child that may hang or crash."""
    async with local_runner(launcher, settings, (), lambda _check, _text: None) as machine:
        return devices_found(machine.inventory, settings.expected_gpus, _out_of_reach(Path("/dev")))


def devices_found(inventory: Inventory, expected: int | None, out_of_reach: list[str]) -> SetupFinding:
    """Whether the devices are all that there should be. `out_of_reach` are files of devices that we may not open."""
    text = f"{count(len(inventory.devices), 'device')} found"
    if out_of_reach:
        text = f"{text}; user {os.geteuid()} may not open {', '.join(out_of_reach)}: add the user to the file's group"
        return SetupFinding("devices", Verdict.FAIL, text)
    if expected is not None and len(inventory.devices) != expected:
        text = f"{text}, and expected_gpus is {expected}; `muster check run nvml` says more"
        return SetupFinding("devices", Verdict.FAIL, text)
    if expected is None and not inventory.devices:
        text = f"{text}: the driver is not loaded, its library is not installed, or this node has no GPU"
        return SetupFinding("devices", Verdict.WARN, text)
    models = ", ".join(sorted({device.model for device in inventory.devices}))
    return SetupFinding("devices", Verdict.PASS, f"{text}: {models}" if models else text)


def _out_of_reach(directory: Path) -> list[str]:
    """The files of NVIDIA's driver, GPUs and control device, that this user may not read and write."""
    files = sorted([*directory.glob("nvidia[0-9]*"), *directory.glob("nvidiactl")])
    return [str(file) for file in files if not os.access(file, os.R_OK | os.W_OK)]
