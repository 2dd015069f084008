"""What a process remembers of devices from look to look, and what it makes of it: rates, durations, what lasts.

Counters of a device begin anew when the driver is loaded, and some wrap. So only rises count: where a counter has
fallen, what it counted in between is unknown and taken as nothing. A rate is what came within the window divided by the
whole window, which is too low, never too high, while fewer looks are remembered.
"""

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from muster_plugins.shared.devices.reading import DeviceReading

HOUR_S = 3600.0
TEN_MINUTES_S = 600.0
"""The window in which gpud counts slowdowns. A link's rates are taken over the same: one bad minute convicts nobody."""

MOST_LOOKS = 1000
"""Of a device: an hour at four looks a minute, and room for four times as many where XIDs ask for more."""

LOOKS_TO_LAST = 3
"""Looks in a row that must agree before a state of the moment counts: utilisation is the driver's mean of up to a
second, clocks and link are of the instant, and memory is given back a while after its process has gone."""

LOAD_PERCENT = 90.0
"""Utilisation from which on a device is at work: the acceptance playbook for H100 nodes expects more of training."""


class Rate(NamedTuple):
    """A metric that says how fast a counter rises over a window, per `per_s` seconds."""

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


class Look(NamedTuple):
    """What is kept of one look at a device, `at` seconds on a clock that never steps.

    The shares are there only for a look under load: `sm_clock_share` where nothing held the clock down, `pcie_share`
    of generation and width together. `unowned_bytes` are in use although nobody uses the device.
    """

    at: float
    slowed_down: bool = False
    counters: Mapping[str, float] = {}
    sm_clock_share: float | None = None
    pcie_share: float | None = None
    unowned_bytes: float | None = None


class History:
    """The looks of the last hour at each device, by its uuid: a device that is exchanged starts with none."""

    def __init__(self) -> None:
        self._looks: dict[str, deque[Look]] = {}

    def remember(self, devices: Iterable[DeviceReading], now: float) -> tuple[DeviceReading, ...]:
        """The readings of this moment, with the numbers that need a history; nameless devices stay as they are."""
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
    """What is worth remembering of a reading."""
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
    """The numbers that the looks give together, the last one being of now. What they do not tell is left out."""
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
    """Seconds in which a slowdown stood; of the time between two looks that do not agree, half."""
    return sum(
        (later.at - earlier.at) * (earlier.slowed_down + later.slowed_down) / 2 for earlier, later in pairwise(looks)
    )


def risen(counter: str, looks: Iterable[Look]) -> float | None:
    """By how much a counter has risen; None with fewer than two looks that say it."""
    values = [look.counters[counter] for look in looks if counter in look.counters]
    return sum(max(later - earlier, 0.0) for earlier, later in pairwise(values)) if len(values) > 1 else None


def _share(number: str, limit: str, device: DeviceReading) -> float | None:
    value, most = device.numbers.get(number), device.limits.get(limit)
    return value / most if value is not None and most else None


def _pcie_share(device: DeviceReading) -> float | None:
    """Of the speed that the link could have: each generation doubles it."""
    width = _share("pcie_width", "pcie_width_max", device)
    generation, newest = device.numbers.get("pcie_generation"), device.limits.get("pcie_generation_max")
    if width is None or generation is None or newest is None:
        return None
    return float(width * 2 ** (generation - newest))


def _unowned_bytes(device: DeviceReading, utilisation: float | None) -> float | None:
    """None where it is not known who uses the device; a process that the driver does not show still shows as work."""
    if device.processes is None or utilisation is None:
        return None
    return 0.0 if device.processes or utilisation else device.numbers.get("memory_used_bytes")


def _last(values: Iterable[float | None]) -> list[float]:
    """The last values that were told, or none at all while they are too few to last."""
    told = [value for value in values if value is not None][-LOOKS_TO_LAST:]
    return told if len(told) == LOOKS_TO_LAST else []


def _highest(values: Iterable[float | None]) -> float | None:
    return max(_last(values), default=None)


def _lowest(values: Iterable[float | None]) -> float | None:
    return min(_last(values), default=None)
