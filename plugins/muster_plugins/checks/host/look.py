"""The common part of the looks of the check `host`: the errors for `nothing to examine` and `cannot find out`.

A look is a function of the run's context. It returns metrics, and facts under its own key, or raises.
"""

import os
from collections.abc import Callable
from pathlib import Path

from muster import Context, Measurement
from muster_plugins.shared import pci

HostLook = Callable[[Context], Measurement]

_LONGEST_BYTES = 1 << 20


class NotApplicable(Exception):
    """The node has nothing of this kind, and nothing is expected."""


SHARE_DIGITS = 6
"""Decimals of a share: a millionth of a file system of 10 TB is 10 MB, and more moves from run to run."""


class CannotDetermine(Exception):
    """The look could not find out; the text says why."""


def read(path: Path) -> str:
    """The text of a file of procfs, sysfs or /etc. Raises CannotDetermine if it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(_LONGEST_BYTES).decode("utf-8", errors="replace")
    except OSError as error:
        raise CannotDetermine(f"{path}: {os.strerror(error.errno or 0)}") from None


def has_gpus(context: Context, sysfs: Path) -> bool:
    """Whether the host has or should have GPUs: by the inventory, the PCI bus, or the operator's setting."""
    return bool(context.devices or context.expected_gpus or pci.nvidia_gpus(sysfs / "bus/pci/devices"))
