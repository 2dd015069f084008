"""What `muster doctor agent` looks at: the agent's way to the coordinator, its disk, devices and machine type."""

import contextlib
import os
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from muster.check import AnyCheck, own_references
from muster.config import Settings
from muster.doctor.broker import keeps_apart, way_to_broker
from muster.doctor.certificates import certificates
from muster.doctor.clock import clock
from muster.doctor.disk import disk
from muster.doctor.process import answer_of
from muster.doctor.setup_finding import SetupFinding
from muster.errors import SettingsError
from muster.machine_type import SET_IT, all_with_source, disagreement
from muster.model import Inventory, Verdict
from muster.nouns import count
from muster.plugins import Plugins, collect_checks
from muster.reference_file import read_references
from muster.references import shipped
from muster.waiting_references import waiting_references
from muster.wire.topics import client_id
from muster_agent.acceptance.local_runner import local_runner
from muster_agent.runs.launcher import Launcher, launch

RUN_BYTES = 10_000
"""What a run takes in the outbox at most, but for a few large ones."""


async def examine(settings: Settings, plugins: Plugins) -> AsyncIterator[SetupFinding]:
    """All that the agent of this node needs. A running agent is not disturbed."""
    checks = collect_checks(plugins)
    with launch(plugins, checks) as launcher:  # forks, which only a process without threads may do
        async for finding in _examined(settings, launcher, checks):
            yield finding


async def _examined(
    settings: Settings, launcher: Launcher, checks: Mapping[str, AnyCheck]
) -> AsyncIterator[SetupFinding]:
    running = answer_of(settings.agent.listen, "/healthz")
    yield agent_found(settings.agent.listen, running)
    broker = settings.broker
    for finding in certificates(broker, broker.agent_url, time.time(), settings.node):
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
    async with local_runner(launcher, settings, (), lambda _check, _text: None) as machine:
        # As an agent asks the plugins: in a child that may hang or crash.
        yield devices_found(machine.inventory, settings.expected_gpus, _out_of_reach(Path("/dev")))
        yield machine_type_found(machine.inventory, _waiting(settings, checks, machine.inventory))


def agent_found(listen: str, health: Mapping[str, Any] | None) -> SetupFinding:
    """Whether the agent of this node runs. `health` is what it answers at `listen`."""
    if health is None:
        text = f"no agent answers at {listen}; start it when the rest is well"
        if listen.endswith(":0"):  # the agent listens on a port that the kernel has chosen
            text = f"agent.listen is {listen}, so nobody knows the port of an agent that runs; set a port to ask it"
        return SetupFinding("agent", Verdict.WARN, text)
    if health.get("broker_connected") is not True:
        return SetupFinding("agent", Verdict.WARN, "it runs, and is not connected to the broker; its log says why")
    return SetupFinding("agent", Verdict.PASS, "it runs, and is connected to the broker")


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


def machine_type_found(inventory: Inventory, waiting: tuple[str, ...]) -> SetupFinding:
    """The machine type and its sources; `waiting` are references that wait for it."""
    known = all_with_source(inventory.machine_type, inventory.machine_types)
    if waiting:
        text = f"unknown, and references wait for it: {'; '.join(waiting)}; {SET_IT}"
        return SetupFinding("machine type", Verdict.WARN, text)
    if said := disagreement(inventory.machine_types):
        text = f"sources disagree, the first one counts: {said}; to decide, {SET_IT}"
        return SetupFinding("machine type", Verdict.WARN, text)
    text = "; also ".join(known) or "unknown; no reference waits for it"
    return SetupFinding("machine type", Verdict.PASS, text)


def _waiting(settings: Settings, checks: Mapping[str, AnyCheck], inventory: Inventory) -> tuple[str, ...]:
    """The references of this machine that wait for its machine type, without a file that cannot be read."""
    rows = [*shipped(), *(row for check in checks.values() for row in own_references(check))]
    with contextlib.suppress(SettingsError):  # the finding about the settings says so
        rows += read_references(settings.references_file, None)
    return waiting_references(inventory, rows, checks)


def _out_of_reach(directory: Path) -> list[str]:
    """The files of NVIDIA's driver, GPUs and control device, that this user may not read and write."""
    files = sorted([*directory.glob("nvidia[0-9]*"), *directory.glob("nvidiactl")])
    return [str(file) for file in files if not os.access(file, os.R_OK | os.W_OK)]
