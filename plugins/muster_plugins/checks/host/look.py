"""What the looks of the check `host` share: how they say that there is nothing to see, or that they cannot see it.

A look is a function of the run's context. It gives metrics, and facts under a key of its own; or it raises.
"""

import os
from collections.abc import Callable
from pathlib import Path

from muster import Context, Measurement
from muster_plugins.shared import pci

Look = Callable[[Context], Measurement]

_LONGEST_BYTES = 1 << 20


class NotHere(Exception):
    """There is nothing of the kind on this node, and nobody expects it."""


class CannotTell(Exception):
    """It could not be found out; the text says why."""


def read(path: Path) -> str:
    """The text of a file of procfs, sysfs or /etc; CannotTell when it cannot be had."""
    try:
        with path.open("rb") as file:
            return file.read(_LONGEST_BYTES).decode("utf-8", errors="replace")
    except OSError as error:
        raise CannotTell(f"{path}: {os.strerror(error.errno or 0)}") from None


def has_gpus(context: Context, sysfs: Path) -> bool:
    """Whether GPUs are here or have to be: by the inventory, by the bus, or by what the operator says."""
    return bool(context.devices or context.expected_gpus or pci.nvidia_gpus(sysfs / "bus/pci/devices"))
