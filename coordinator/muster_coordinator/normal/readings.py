"""The numbers of a run, device by device."""

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from muster.model import Json, Metric

Device = int | None
"""A device's index; None is the node itself, or the CPU that is measured in a device's place."""


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
