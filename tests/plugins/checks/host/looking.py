"""What the tests of each look share. The trees that stand in for /proc and /sys are synthetic."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

from muster import Context, Device, Measurement
from muster.references import applicable, shipped


def here(*devices: Device, expected_gpus: int | None = None) -> Context:
    """A run's surroundings."""
    return cast("Context", SimpleNamespace(devices=devices, expected_gpus=expected_gpus))


GPUS = here(Device(index=0, uuid="GPU-0", model="NVIDIA H200"))
NONE = here()


def judged(part, measurement: Measurement) -> dict[str, str]:
    """By code, the severity of what `part` finds with shipped references."""
    found = part.judge(measurement, applicable(shipped(), "host", measurement.facts))
    assert {each.code for each in found} <= set(part.FINDS)
    return {each.code: each.severity for each in found}


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path
