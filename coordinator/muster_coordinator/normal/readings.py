"""The numbers of a run, device by device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import JsonValue

from muster.model import Json, Metric
from muster_coordinator.normal.normality import EARLIER_RUNS, RECENT_RUNS, Level, own_level_of

Device = int | None
"""A device's index; None is the node itself, or the CPU that is measured in a device's place."""


class MetricReading(NamedTuple):
    """One number of one device; `uuid` is empty where nobody knows it."""

    device: Device
    uuid: str
    value: float


def by_device(value: Metric, facts: Json) -> list[tuple[Device, float | None]]:
    """What was measured of each device, or of the node where `value` is a single number."""
    if not isinstance(value, list):
        return [(None, value)]
    return list(zip(device_indices(facts, len(value)), value, strict=True))


def device_indices(facts: Mapping[str, JsonValue], count: int) -> Sequence[Device]:
    """The devices that a list of `count` values is about: those that the facts name, or else the first ones."""
    named = facts.get("devices")
    if isinstance(named, list) and len(named) == count:
        return [index if isinstance(index, int) else None for index in named]
    return range(count)


@dataclass(slots=True)
class Track:
    """A device's last values, as many as are needed, and its own level when there were enough."""

    uuid: str
    own: Level | None = None
    values: tuple[float, ...] = ()

    @property
    def typical(self) -> float | None:
        """What the device is compared by."""
        last = self.values[-RECENT_RUNS:]
        return sorted(last)[RECENT_RUNS // 2] if len(last) == RECENT_RUNS else None

    @property
    def noise(self) -> float | None:
        """How much its values differ, as a share of its level; None until that is known."""
        if self.own is None:
            return None
        return self.own.spread / abs(self.own.centre) if self.own.centre else 0.0

    def add(self, value: float) -> bool:
        """Notes a value; whether the own level is known since now."""
        self.values = (*self.values, value)
        learned = self.own is None and len(self.values) == EARLIER_RUNS
        if learned:
            self.own = own_level_of(self.values)
        if self.own is not None:
            self.values = self.values[-RECENT_RUNS:]
        return learned
