"""The plugin `cloud`: what the metadata server of the cloud says of the machine.

It asks for the machine type and the place once, and for notices of preemption and maintenance as long as the agent
runs. Only a machine that belongs to a cloud by its firmware asks. Other machines never wait for a server that is not
there.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import structlog
from pydantic import Field

from muster import Config, DepartureProbe, MachineType, MachineTypeSource, Section, hookimpl
from muster_plugins.machines.cloud.clouds import Cloud, cloud_of
from muster_plugins.machines.cloud.metadata_server import ADDRESS, NoMetadata, ask, ask_machine_type
from muster_plugins.shared import dmi

NAME = "cloud"

NOTICES_EVERY_S = 5.0
"""AWS recommends this interval. The shortest warning of a preemption, that of Google Cloud and Azure, is 30 s."""

PAUSE_S = 60.0
"""Seconds until a server that did not answer is asked for notices again."""

log = structlog.get_logger()

Address = tuple[str, int]

_known: dict[str, MachineType] = {}
"""The machine type by cloud: a machine does not change it while this process lives, so it asks once."""

_labels: dict[str, dict[str, str]] = {}
"""The labels by cloud, for the same reason: a machine that moves to another host starts again."""

_logged: set[str] = set()
"""The reasons that are in the log already: a server that never answers is asked every minute."""

T = TypeVar("T")


class CloudSettings(Section):
    """The table `[plugins.cloud]`."""

    departures: bool = Field(
        True, description="Ask the cloud's metadata server every 5 s whether it ends or restarts the machine"
    )


@hookimpl
def muster_configure(config: Config) -> None:
    config.plugin(NAME, CloudSettings)


@hookimpl
def muster_machine_types(config: Config) -> Iterator[MachineType]:
    yield from machine_types(dmi.SYSFS, ADDRESS)


@hookimpl
def muster_labels(config: Config) -> dict[str, str]:
    return labels(dmi.SYSFS, ADDRESS)


@hookimpl
def muster_departures(config: Config) -> Iterator[DepartureProbe]:
    if config.plugin(NAME, CloudSettings).departures:
        yield from departures(dmi.SYSFS, ADDRESS)


def machine_types(root: Path, address: Address) -> Iterator[MachineType]:
    """The machine type by the metadata server at `address`; nothing outside of a cloud, or without an answer."""
    cloud = cloud_of(root)
    if cloud is None:
        return
    if cloud.name not in _known and (name := _or_none(cloud, lambda: ask_machine_type(cloud, address))):
        _known[cloud.name] = MachineType(name=name, source=MachineTypeSource.CLOUD, said_by=cloud.name)
    if cloud.name in _known:
        yield _known[cloud.name]


def labels(root: Path, address: Address) -> dict[str, str]:
    """Labels with the place of the machine by the metadata server; none outside of a cloud, or without an answer."""
    cloud = cloud_of(root)
    if cloud is None:
        return {}
    if not _labels.get(cloud.name) and (answers := _or_none(cloud, lambda: ask(cloud, cloud.place, address))):
        _labels[cloud.name] = cloud.labels(answers)
    return _labels.get(cloud.name, {})


def departures(root: Path, address: Address) -> Iterator[DepartureProbe]:
    """A probe for the notices of the metadata server; none outside of a cloud."""
    if (cloud := cloud_of(root)) is not None:
        yield DepartureProbe(name=cloud.name, probe=NoticeProbe(cloud, address), interval_s=NOTICES_EVERY_S)


class NoticeProbe:
    """Says why the cloud ends or restarts the machine. While the server does not answer, its last answer counts."""

    def __init__(self, cloud: Cloud, address: Address) -> None:
        self._cloud = cloud
        self._address = address
        self._reason: str | None = None
        self._not_before = 0.0

    def __call__(self) -> str | None:
        if time.monotonic() >= self._not_before:
            answers = _or_none(self._cloud, lambda: ask(self._cloud, self._cloud.notices, self._address))
            if answers is None:
                self._not_before = time.monotonic() + PAUSE_S
            else:
                self._reason = self._cloud.departure(answers, time.time())
        return self._reason


def _or_none(cloud: Cloud, ask_it: Callable[[], T]) -> T | None:
    """The answer of the cloud's server; None without one, and each reason for that is logged once."""
    try:
        return ask_it()
    except NoMetadata as reason:
        if str(reason) not in _logged:
            _logged.add(str(reason))
            log.warning("metadata_server_unanswered", cloud=cloud.name, why=str(reason))
        return None
