"""Readings of devices that a process keeps, and the values derived from them: rates, durations, lasting states.

A device's counters restart when the driver is loaded, and some wrap. Therefore only increases count: if a counter
falls, nothing is counted for that interval. A rate is the increase within the window divided by the whole window. With
few readings it is too low, never too high.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from muster_plugins.shared.devices.reading import DeviceReading

HOUR_S = 3600.0
TEN_MINUTES_S = 600.0
"""gpud counts slowdowns in this window. Rates of links use it, too: one bad minute convicts no device."""

MOST_LOOKS = 1000
"""Readings kept for each device: an hour at four a minute, and four times as many because XIDs cause extra ones."""

LOOKS_TO_LAST = 3
"""Consecutive readings that must agree before a momentary state counts.

Utilisation is the driver's mean over up to a second, clocks and links are momentary, and memory is freed some time
after its process has ended.
"""

LOAD_PERCENT = 90.0
"""Utilisation from which a device counts as working. The playbook for H100 nodes expects more during training."""


class Rate(NamedTuple):
    """A metric that says how fast a counter increases over a window, per `per_s` seconds."""

    metric: str
    counter: str
    window_s: float
    per_s: float


RATES = (
    Rate("ecc_correctable_per_hour", "ecc_correctable_volatile", HOUR_S, 3600),
    Rate("nvlink_crc_errors_per_s", "nvlink_crc_errors", TEN_MINUTES_S, 1),
    Rate("nvlink_replays_per_min", "nvlink_replays", TEN_MINUTES_S, 60),
    Rate("nvlink_recoveries_per_min", "nvlink_recoveries", TEN_MINUTES_S, 60),
    Rate("pcie_replays_per_min", "pcie_replays", TEN_MINUTES_S, 60),
)


SHARE_DIGITS = 4
"""Decimals of a share. The driver gives clocks in steps of 15 MHz, which is 0.0075 of 2,000 MHz."""


class Look(NamedTuple):
    """The values that are kept of one reading, `at` seconds on a monotonic clock.

    The shares exist only for a reading under load: `sm_clock_share` if nothing limited the clock, `pcie_share` of
    generation and width together. `unowned_bytes` are in use although no process uses the device.
    """

    at: float
    slowed_down: bool = False
    counters: Mapping[str, float] = {}
    sm_clock_share: float | None = None
    pcie_share: float | None = None
    unowned_bytes: float | None = None


class History:
    """The readings of the last hour for each device, by UUID: a replaced device starts with none."""

    def __init__(self) -> None:
        self._looks: dict[str, deque[Look]] = {}

    def remember(self, devices: Iterable[DeviceReading], now: float) -> tuple[DeviceReading, ...]:
        """The current readings, with the values that need a history. Devices without a UUID stay as they are."""
        self._forget(now - HOUR_S)
        return tuple(self._remembered(device, now) if device.uuid else device for device in devices)

    def _remembered(self, device: DeviceReading, now: float) -> DeviceReading:
        looks = self._looks.setdefault(device.uuid, deque(maxlen=MOST_LOOKS))
        looks.append(look_at(device, now))
        return device.model_copy(update={"numbers": device.numbers | over_time(looks, device.limits)})

    def _forget(self, before: float) -> None:
        for looks in self._looks.values():
            while looks and looks[0].at < before:
                looks.popleft()
        self._looks = {uuid: looks for uuid, looks in self._looks.items() if looks}


def look_at(device: DeviceReading, now: float) -> Look:
    """The values of a reading that are kept."""
    utilisation = device.numbers.get("utilisation_percent")
    is_loaded = utilisation is not None and utilisation >= LOAD_PERCENT
    return Look(
        at=now,
        slowed_down=bool(device.throttled),
        counters={rate.counter: device.numbers[rate.counter] for rate in RATES if rate.counter in device.numbers},
        sm_clock_share=_share("sm_clock_mhz", "sm_clock_max_mhz", device) if is_loaded and device.unhindered else None,
        pcie_share=_pcie_share(device) if is_loaded else None,
        unowned_bytes=_unowned_bytes(device, utilisation),
    )


def over_time(looks: Sequence[Look], limits: Mapping[str, float]) -> dict[str, float]:
    """The values derived from the readings, the last of which is current. Unknown ones are left out."""
    now = looks[-1].at
    recent = [look for look in looks if look.at >= now - TEN_MINUTES_S]
    numbers = {"slowed_down_s": slowed_down_s(recent)} if len(recent) > 1 else {}
    for rate in RATES:
        rise = risen(rate.counter, recent if rate.window_s == TEN_MINUTES_S else looks)
        if rise is not None:
            numbers[rate.metric] = rise * rate.per_s / rate.window_s
    replays, lanes = numbers.pop("pcie_replays_per_min", None), limits.get("pcie_width_max")
    if replays is not None and lanes:
        numbers["pcie_replays_per_lane_min"] = replays / lanes
    lasting = {
        "sm_clock_share": _highest([look.sm_clock_share for look in recent]),
        "pcie_share": _highest([look.pcie_share for look in recent]),
        "memory_unowned_bytes": _lowest([look.unowned_bytes for look in recent]),
    }
    return numbers | {name: value for name, value in lasting.items() if value is not None}


def slowed_down_s(looks: Sequence[Look]) -> float:
    """Seconds with a slowdown. If two neighbouring readings differ, half of the time between them counts."""
    return sum(
        (later.at - earlier.at) * (earlier.slowed_down + later.slowed_down) / 2 for earlier, later in pairwise(looks)
    )


def risen(counter: str, looks: Iterable[Look]) -> float | None:
    """The increase of a counter; None with fewer than two readings that have it."""
    values = [look.counters[counter] for look in looks if counter in look.counters]
    return sum(max(later - earlier, 0.0) for earlier, later in pairwise(values)) if len(values) > 1 else None


def _share(number: str, limit: str, device: DeviceReading) -> float | None:
    value, most = device.numbers.get(number), device.limits.get(limit)
    return round(value / most, SHARE_DIGITS) if value is not None and most else None


def _pcie_share(device: DeviceReading) -> float | None:
    """Share of the link's possible speed: each generation doubles it."""
    width = _share("pcie_width", "pcie_width_max", device)
    generation, newest = device.numbers.get("pcie_generation"), device.limits.get("pcie_generation_max")
    if width is None or generation is None or newest is None:
        return None
    return float(width * 2 ** (generation - newest))


def _unowned_bytes(device: DeviceReading, utilisation: float | None) -> float | None:
    """None if the users of the device are unknown; a process that the driver does not show still counts as work."""
    if device.processes is None or utilisation is None:
        return None
    return 0.0 if device.processes or utilisation else device.numbers.get("memory_used_bytes")


def _last(values: Iterable[float | None]) -> list[float]:
    """The last values; an empty list if there are too few."""
    known = [value for value in values if value is not None][-LOOKS_TO_LAST:]
    return known if len(known) == LOOKS_TO_LAST else []


def _highest(values: Iterable[float | None]) -> float | None:
    return max(_last(values), default=None)


def _lowest(values: Iterable[float | None]) -> float | None:
    return min(_last(values), default=None)
