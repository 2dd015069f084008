"""Which NVIDIA GPUs stand on the PCI bus, whether or not their driver works."""

from pathlib import Path

SYSFS = Path("/sys/bus/pci/devices")

_NVIDIA = "0x10de"
_DISPLAY_CLASS = "0x03"


def nvidia_gpus(root: Path) -> tuple[str, ...]:
    """The addresses, `0000:17:00.0`, of NVIDIA's display and compute devices below `root`, in order of address."""
    if not root.is_dir():
        return ()
    return tuple(sorted(entry.name.lower() for entry in root.iterdir() if _is_nvidia_gpu(entry)))


def _is_nvidia_gpu(entry: Path) -> bool:
    try:
        vendor, kind = ((entry / name).read_text(encoding="ascii").strip() for name in ("vendor", "class"))
    except OSError:  # unplugged while we looked
        return False
    return vendor == _NVIDIA and kind.startswith(_DISPLAY_CLASS)
