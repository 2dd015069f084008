"""Which NVIDIA GPUs and NVSwitches stand on the PCI bus, whether or not their driver works."""

from pathlib import Path

SYSFS = Path("/sys/bus/pci/devices")

_NVIDIA = "0x10de"
_DISPLAY_CLASS = "0x03"
_BRIDGE_CLASS = "0x0680"


def nvidia_gpus(root: Path) -> tuple[str, ...]:
    """The addresses, `0000:17:00.0`, of NVIDIA's display and compute devices below `root`, in order of address."""
    return _nvidia(root, _DISPLAY_CLASS)


def nvidia_switches(root: Path) -> tuple[str, ...]:
    """The addresses of the NVSwitches below `root`, up to those of Hopper; later ones are no NVIDIA device here."""
    return _nvidia(root, _BRIDGE_CLASS)


def _nvidia(root: Path, kind: str) -> tuple[str, ...]:
    if not root.is_dir():
        return ()
    return tuple(sorted(entry.name.lower() for entry in root.iterdir() if _is_nvidia(entry, kind)))


def _is_nvidia(entry: Path, wanted: str) -> bool:
    try:
        vendor, kind = ((entry / name).read_text(encoding="ascii").strip() for name in ("vendor", "class"))
    except OSError:  # unplugged while we looked
        return False
    return vendor == _NVIDIA and kind.startswith(wanted)
