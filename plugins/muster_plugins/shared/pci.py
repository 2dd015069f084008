"""Lists NVIDIA GPUs and NVSwitches on the PCI bus, even if their driver does not work."""

from pathlib import Path

SYSFS = Path("/sys/bus/pci/devices")

_NVIDIA = "0x10de"
_DISPLAY_CLASS = "0x03"
_BRIDGE_CLASS = "0x0680"


def nvidia_gpus(root: Path) -> tuple[str, ...]:
    """The addresses, `0000:17:00.0`, of NVIDIA's display and compute devices below `root`, in order of address."""
    return _nvidia(root, _DISPLAY_CLASS)


def nvidia_switches(root: Path) -> tuple[str, ...]:
    """The addresses of the NVSwitches below `root`, up to Hopper; later ones are not NVIDIA devices on this bus."""
    return _nvidia(root, _BRIDGE_CLASS)


def _nvidia(root: Path, kind: str) -> tuple[str, ...]:
    if not root.is_dir():
        return ()
    return tuple(sorted(entry.name.lower() for entry in root.iterdir() if _is_nvidia(entry, kind)))


def _is_nvidia(entry: Path, wanted: str) -> bool:
    try:
        vendor, kind = ((entry / name).read_text(encoding="ascii").strip() for name in ("vendor", "class"))
    except OSError:  # unplugged meanwhile
        return False
    return vendor == _NVIDIA and kind.startswith(wanted)
