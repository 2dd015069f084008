"""The numbers that a run measured, device by device, and what one device measured over its runs (`Track`)."""

import math
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pydantic import JsonValue

from muster.model import Json, Metric
from muster_coordinator.model.baselines import DeviceLevel
from muster_coordinator.normal.normality import EARLIER_RUNS, RECENT_RUNS, Level, own_level_of

NO_LEVEL = Level(math.nan, math.nan)

DeviceIndex = int | None
"""A device's index; None is the node itself, or the CPU that is measured in place of a device."""


def device_name(device: DeviceIndex) -> str:
    """The index as a key in stored records."""
    return "" if device is None else str(device)


def device_index(name: str) -> DeviceIndex:
    """The index that such a key stands for."""
    return int(name) if name else None


class MetricReading(NamedTuple):
    """One number of one device. `uuid` is empty if unknown."""

    device: DeviceIndex
    uuid: str
    value: float


def by_device(value: Metric, facts: Json) -> list[tuple[DeviceIndex, float | None]]:
    """The value of each device, or of the node if `value` is a single number."""
    if not isinstance(value, list):
        return [(None, value)]
    return list(zip(device_indices(facts, len(value)), value, strict=True))


def device_indices(facts: Mapping[str, JsonValue], count: int) -> Sequence[DeviceIndex]:
    """The devices of a list of `count` values: those that the facts name, otherwise the first ones.

    The facts may name a device by its index, or by an object with its `index`.
    """
    named = facts.get("devices")
    if isinstance(named, list) and len(named) == count:
        indices = (each.get("index") if isinstance(each, dict) else each for each in named)
        return [index if isinstance(index, int) else None for index in indices]
    return range(count)


class Track:
    """The last values of a device, as many as are needed, and its own level once there were enough.

    The numbers are packed: a large fleet has a million of these, which take 130 bytes each instead of 300.
    """

    __slots__ = ("_numbers", "uuid")

    def __init__(self, uuid: str, own: Level | None = None, values: Sequence[float] = ()) -> None:
        self.uuid = uuid
        self._numbers = b""
        self._keep(own, values)

    @property
    def own(self) -> Level | None:
        """Its own level; None until there were enough values."""
        centre, spread, *_ = self._unpacked
        return None if math.isnan(spread) else Level(centre, spread)

    @property
    def values(self) -> tuple[float, ...]:
        """Its last values, the latest at the end."""
        return self._unpacked[2:]

    @property
    def typical(self) -> float | None:
        """The value that the device is compared by: the median of its last three; None before."""
        last = self.values[-RECENT_RUNS:]
        return sorted(last)[RECENT_RUNS // 2] if len(last) == RECENT_RUNS else None

    @property
    def noise(self) -> float | None:
        """The spread of its values as a share of its own level; None until the level is known."""
        own = self.own
        if own is None:
            return None
        return own.spread / abs(own.centre) if own.centre else 0.0

    def add(self, value: float) -> None:
        """Adds a value. The own level becomes known with the last of the first values."""
        own, values = self.own, (*self.values, value)
        if own is None and len(values) == EARLIER_RUNS:
            own = own_level_of(values)
        self._keep(own, values if own is None else values[-RECENT_RUNS:])

    def forget_own(self) -> None:
        """Forgets its own level: the next values make a new one."""
        self._keep(None, self.values)

    @property
    def _unpacked(self) -> tuple[float, ...]:
        return struct.unpack(f"{len(self._numbers) // 8}d", self._numbers)

    def _keep(self, own: Level | None, values: Sequence[float]) -> None:
        self._numbers = struct.pack(f"{2 + len(values)}d", *(own or NO_LEVEL), *values)


def stored_devices(tracks: Mapping[DeviceIndex, Track]) -> dict[str, DeviceLevel]:
    """What is stored of the devices of a node."""
    return {
        device_name(device): (track.uuid, *((None, None) if track.own is None else track.own), track.values)
        for device, track in tracks.items()
    }


def restored_devices(stored: Mapping[str, DeviceLevel]) -> dict[DeviceIndex, Track]:
    """The devices of which this was stored. The text of a UUID is one object for all baselines."""
    return {
        device_index(name): Track(
            sys.intern(uuid), None if centre is None or spread is None else Level(centre, spread), values
        )
        for name, (uuid, centre, spread, values) in stored.items()
    }
