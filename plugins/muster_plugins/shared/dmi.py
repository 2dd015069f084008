"""Reads what the firmware says about this machine (DMI, also called SMBIOS). No right is needed for these fields."""

from pathlib import Path

SYSFS = Path("/sys/class/dmi/id")

_MOST_BYTES = 4096
"""Maximum size of a field; sysfs gives at most a page."""


def read_field(root: Path, name: str) -> str:
    """The value of the field `name`, such as `product_name`; empty if the firmware does not have it."""
    try:
        with (root / name).open("rb") as file:
            return file.read(_MOST_BYTES).decode("ascii", errors="replace").strip()
    except OSError:  # a virtual machine without DMI, or ARM
        return ""
