"""Services that GPU nodes depend on: Fabric Manager and IMEX under systemd, and the container runtime."""

import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

from muster import Context, Finding, Measurement, Reference, Severity
from muster.model import Data
from muster_plugins.checks.host.look import CannotDetermine, NotApplicable, has_gpus
from muster_plugins.shared import pci
from muster_plugins.shared.listed_finding import listed_finding
from muster_plugins.shared.programs import NotRun, TimedOut, find_program, run_program

FABRIC_MANAGER = "nvidia-fabricmanager.service"
"""Examined on hosts with NVSwitches. Images for many machine types include it, and it fails on other hosts."""

IMEX = "nvidia-imex.service"
"""Examined wherever it is installed. Without it, GPUs of different nodes cannot share memory over NVLink."""

KNOWN_RUNTIMES = (Path("/run/containerd/containerd.sock"), Path("/var/run/docker.sock"), Path("/run/crio/crio.sock"))

ANSWER_S = 2.0
"""A local service that does not answer within this time hangs."""

FINDS = {
    "host.service_down": "services do not run",
    "host.runtime_down": "the container runtime does not accept connections",
    "host.runtime_refused": "this user may not connect to the container runtime",
}


_NOT_BOOTED = "System has not been booted with systemd"


class NoSystemd(CannotDetermine):
    """systemctl exists, but systemd has not started this host or container."""


class SystemdUnit(Data):
    """A unit in `systemctl show`."""

    name: str
    load: str
    active: str
    enabled: str
    expected: bool

    @property
    def is_down(self) -> bool:
        """Whether it is expected and not active, or installed and failed, or enabled and not running."""
        if self.expected:
            return self.active != "active"
        return self.load == "loaded" and (self.active == "failed" or (self.is_enabled and self.active == "inactive"))

    @property
    def is_enabled(self) -> bool:
        """Whether it starts with the host."""
        return self.enabled in ("enabled", "enabled-runtime")


class ContainerRuntime(Data):
    """The socket of a container runtime. `error` is None if it accepts; `refused`: this user may not connect."""

    path: str
    expected: bool
    error: str | None = None
    refused: bool = False


def units(systemctl: Path, expected: Sequence[str], sysfs: Path, context: Context) -> Measurement:
    """The state of the expected units, and of the known units that are installed."""
    if not expected and not has_gpus(context, sysfs):
        raise NotApplicable("no GPU here")
    program = find_program(systemctl)
    if program is None:
        raise (CannotDetermine if expected else NotApplicable)(f"{systemctl} is not installed")
    known = [FABRIC_MANAGER, IMEX] if pci.nvidia_switches(sysfs / "bus/pci/devices") else [IMEX]
    asked = [*expected, *(name for name in known if name not in expected)]
    try:
        answers = _show(program, asked)
    except NoSystemd as error:
        raise (CannotDetermine if expected else NotApplicable)(str(error)) from None
    found = [
        SystemdUnit(
            name=name,
            load=state.get("LoadState", ""),
            active=state.get("ActiveState", ""),
            enabled=state.get("UnitFileState", ""),
            expected=name in expected,
        )
        for name, state in zip(asked, answers, strict=True)
    ]
    there = (unit for unit in found if unit.expected or unit.load != "not-found")
    return Measurement(facts={"units": [unit.model_dump(mode="json") for unit in there]})


def _show(program: Path, names: Sequence[str]) -> list[dict[str, str]]:
    """Systemd's state of each unit."""
    properties = "--property=LoadState,ActiveState,UnitFileState"
    try:
        done = run_program([program, "show", properties, "--", *names], timeout_s=ANSWER_S)
    except (NotRun, TimedOut) as error:
        raise CannotDetermine(str(error)) from None
    if done.exit_code and _NOT_BOOTED in done.stderr:
        raise NoSystemd(_NOT_BOOTED)
    blocks = _blocks(done.stdout)
    if done.exit_code or len(blocks) != len(names):
        raise CannotDetermine(f"{program} reports {len(blocks)} of {len(names)} units: {done.stderr.strip()[:200]}")
    return blocks


def _blocks(text: str) -> list[dict[str, str]]:
    """One block for each unit in the order of the question: lines of `Key=Value`, with an empty line in between."""
    blocks = (dict(line.split("=", 1) for line in block.splitlines() if "=" in line) for block in text.split("\n\n"))
    return [block for block in blocks if block]


def runtimes(expected: Sequence[Path], known: Sequence[Path], context: Context) -> Measurement:
    """Whether container runtimes accept connections: the expected ones, and the known ones that have a socket."""
    found = [path for path in known if path not in expected and path.is_socket()]
    if not expected and not found:
        raise NotApplicable("no container runtime here")
    tried = [_tried(path, expected=path in expected) for path in (*expected, *found)]
    return Measurement(facts={"runtimes": [runtime.model_dump(mode="json") for runtime in tried]})


def _tried(path: Path, *, expected: bool) -> ContainerRuntime:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(ANSWER_S)
        try:
            client.connect(os.fspath(path))
        except PermissionError as error:
            return ContainerRuntime(path=str(path), expected=expected, error=error.strerror, refused=True)
        except OSError as error:
            return ContainerRuntime(path=str(path), expected=expected, error=error.strerror or str(error))
    return ContainerRuntime(path=str(path), expected=expected)


def judge(measurement: Measurement, references: Mapping[str, Reference]) -> list[Finding]:
    """Finds units that are down and runtimes that do not answer; only a warning if the settings do not require them."""
    units_here = [SystemdUnit.model_validate(each) for each in cast("list[object]", measurement.facts.get("units", []))]
    down = [unit for unit in units_here if unit.is_down]
    tried = [
        ContainerRuntime.model_validate(each) for each in cast("list[object]", measurement.facts.get("runtimes", []))
    ]
    findings = []
    for expected, severity, refused in (
        (True, Severity.ERROR, Severity.UNKNOWN),
        (False, Severity.WARNING, Severity.SKIPPED),
    ):
        findings += listed_finding(FINDS, "host.service_down", severity, _states(down, expected=expected))
        findings += listed_finding(
            FINDS, "host.runtime_down", severity, _errors(tried, expected=expected, refused=False)
        )
        findings += listed_finding(
            FINDS, "host.runtime_refused", refused, _errors(tried, expected=expected, refused=True)
        )
    return findings


def _states(down: Sequence[SystemdUnit], *, expected: bool) -> list[str]:
    return [f"{unit.name} is {unit.active} ({unit.load})" for unit in down if unit.expected == expected]


def _errors(tried: Sequence[ContainerRuntime], *, expected: bool, refused: bool) -> list[str]:
    chosen = [each for each in tried if each.error and (each.expected, each.refused) == (expected, refused)]
    return [f"{each.path} ({each.error})" for each in chosen]
