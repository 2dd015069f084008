"""Asks a person at a terminal what the options of `muster init` did not say. Every question has a default."""

import socket
from collections.abc import Mapping
from typing import Any

from muster.errors import SettingsError, unknown
from muster.setup.fleet_kind import SUMMARIES, WITH_A_BROKER, FleetKind
from muster.terminal import say


def asked_kind() -> FleetKind:
    """The kind of the fleet."""
    for kind, summary in SUMMARIES.items():
        say(f"  {kind:<12}{summary}")
    answer = _asked("Kind of fleet", FleetKind.SYSTEMD)
    if answer not in list(FleetKind):
        raise SettingsError(unknown("kind", answer, FleetKind))
    return FleetKind(answer)


def asked_answers(kind: FleetKind, told: Mapping[str, Any]) -> dict[str, Any]:
    """What is not told yet, by the names of `SetupAnswers`. An empty line takes the default in brackets."""
    asked: dict[str, Any] = {}
    if "fleet" not in told:
        asked["fleet"] = _asked("Name of the fleet", "default")
    if kind in WITH_A_BROKER and "host" not in told:
        asked["host"] = _asked("Host of broker and coordinator, as nodes reach it", socket.getfqdn())
    if kind is FleetKind.KUBERNETES and "registry" not in told:
        asked["registry"] = _asked("Registry from which nodes get the images", "registry.internal")
    if "expected_gpus" not in told and (gpus := _asked("GPUs of each node; empty: any number", "")):
        if not gpus.isdecimal():
            raise SettingsError(f"GPUs: {gpus!r} is no number; give one such as 8")
        asked["expected_gpus"] = int(gpus)
    return asked


def asked_nodes(kind: FleetKind) -> str | None:
    """A list of nodes; None for none, and where nodes are not named."""
    if kind not in WITH_A_BROKER:
        return None
    return _asked("Nodes, such as gpu-[001-016]; empty: add them later", "") or None


def _asked(question: str, default: str) -> str:
    say(f"{question} [{default}]: ", end="")
    try:
        return input().strip() or default
    except EOFError:
        say()
        return default
