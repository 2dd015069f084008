"""Reads the ports of the RDMA devices, InfiniBand and Ethernet alike, from sysfs.

A file may vanish between listing and reading, may be refused, or may not hold a number. `unsupported` names the values
that a port does not have, `unreadable` the values that could not be read.

A pod may take a port into its network namespace. In the kernel's shared mode, which is the default, the RDMA device
stays in sight and loses only its network interface. In its exclusive mode (`rdma system set netns exclusive`) the
device disappears here; its PCI function and the function's driver stay.
"""

import errno
import fnmatch
import re
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field

from muster.model import Data
from muster_plugins.checks.fabric.counters import COUNTERS

SYSFS = Path("/sys")

_LONGEST_BYTES = 4096  # one page: the maximum size of a file in sysfs

_MOST_COUNTED = (1 << 64) - 1  # the widest counter that sysfs shows

_EXCLUSIVE = "N"
"""The module parameter `netns_mode` of ib_core in the exclusive mode; Y is the shared mode."""

_MOVES = "mlx5_core"
"""The driver of the devices that clouds give to pods. Of other drivers, not every function has an RDMA device."""

_PCI_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")

_RATE = re.compile(r"\d{1,9}(\.\d{1,9})?(?=\s|$)")

_NOT_OFFERED = frozenset({errno.ENOENT, errno.EINVAL, errno.EOPNOTSUPP, errno.ENODATA})
"""The errors that drivers return for counters that a device, such as a virtual function, does not have."""


class Port(Data):
    """One port at one moment. Unreadable values are empty or None. The facts leave out raw counters.

    A `virtual` port belongs to a virtual function, which comes and goes with the container that uses it. `pci` is the
    address of the function; empty if the device has none.
    """

    device: str
    number: int
    pci: str = Field("", exclude=True)
    virtual: bool = False
    state: str = ""
    phys_state: str = ""
    rate_gbitps: float | None = None
    link_layer: str = ""
    interface: str = ""
    counters: dict[str, int] = Field({}, exclude=True)
    unsupported: tuple[str, ...] = ()
    unreadable: dict[str, str] = {}

    @property
    def name(self) -> str:
        """The name in NCCL and ibstat, for example `mlx5_0/1`."""
        return f"{self.device}/{self.number}"

    @property
    def active(self) -> bool:
        """Whether it carries traffic. The link of an active port is up, even if its state cannot be read."""
        return self.state == "ACTIVE" and self.phys_state in ("LinkUp", "")


def devices(root: Path) -> tuple[str, ...]:
    """The names of the RDMA devices below `root`; none if the kernel has no such class."""
    return tuple(sorted(entry.name for entry in _entries(root / "class/infiniband")))


def out_of_sight(root: Path) -> tuple[str, ...]:
    """The PCI addresses of functions whose RDMA device is in another network namespace, such as a pod's."""
    try:
        mode = (root / "module/ib_core/parameters/netns_mode").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ()
    if mode.strip() != _EXCLUSIVE:
        return ()
    functions = (entry for entry in _entries(root / "bus/pci/drivers" / _MOVES) if _PCI_ADDRESS.fullmatch(entry.name))
    return tuple(entry.name for entry in functions if not _entries(entry / "infiniband"))


def excluded(names: Sequence[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """The names that a pattern such as `mlx5_bond_*` excludes."""
    return tuple(name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns))


def read_ports(root: Path, names: Sequence[str]) -> tuple[Port, ...]:
    """The ports of the devices `names`, without ports that vanished during the reading."""
    found = [
        _PortReader(root, name, directory).read()
        for name in names
        for directory in _entries(root / "class/infiniband" / name / "ports")
        if directory.name.isdecimal()
    ]
    return tuple(port for port in found if port is not None)


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []


class _PortReader:
    """Reads the files of a port and notes which ones it does not have."""

    def __init__(self, root: Path, device: str, directory: Path) -> None:
        self._root = root
        self._device = device
        self._directory = directory
        self._unsupported: list[str] = []
        self._unreadable: dict[str, str] = {}

    def read(self) -> Port | None:
        number = int(self._directory.name)
        interface = self._interface(number)
        folders = {
            "counters": self._directory / "counters",
            "hw_counters": self._directory / "hw_counters",
            "net": self._root / "class/net" / interface if interface else None,
        }
        texts = {name: self._text(name, self._directory / name) for name in ("state", "phys_state", "link_layer")}
        rate = self._rate(self._text("rate", self._directory / "rate"))
        values = {name: self._count(name, folders[counter.folder]) for name, counter in COUNTERS.items()}
        if not self._directory.is_dir():
            return None
        if not texts["state"]:
            self._unreadable.setdefault("state", "says nothing")
        return Port(
            device=self._device,
            number=number,
            pci=self._pci_address(),
            virtual=(self._root / "class/infiniband" / self._device / "device/physfn").exists(),
            state=_after_colon(texts["state"]),
            phys_state=_after_colon(texts["phys_state"]),
            rate_gbitps=rate,
            link_layer=texts["link_layer"],
            interface=interface,
            counters={name: value for name, value in values.items() if value is not None},
            unsupported=tuple(self._unsupported),
            unreadable=self._unreadable,
        )

    def _pci_address(self) -> str:
        function = (self._root / "class/infiniband" / self._device / "device").resolve().name
        return function if _PCI_ADDRESS.fullmatch(function) else ""

    def _interface(self, number: int) -> str:
        """The network interface of this port. A function with two ports has two, which differ in `dev_port`."""
        for entry in _entries(self._root / "class/infiniband" / self._device / "device/net"):
            if self._text("dev_port", self._root / "class/net" / entry.name / "dev_port") == str(number - 1):
                return entry.name
        return ""

    def _text(self, name: str, path: Path) -> str:
        """The text of a file; empty if it holds nothing usable."""
        try:
            with path.open("rb") as file:
                return file.read(_LONGEST_BYTES).decode("ascii").strip()
        except OSError as error:
            if error.errno in _NOT_OFFERED:
                self._unsupported.append(name)
            else:
                self._unreadable[name] = error.strerror or str(error)
        except UnicodeDecodeError:
            self._unreadable[name] = "not text"
        return ""

    def _rate(self, text: str) -> float | None:
        """The number in `400 Gb/sec (4X NDR)`."""
        if found := _RATE.match(text):
            return float(found[0])
        if text:
            self._unreadable["rate"] = f"not a rate: {text[:40]!r}"
        return None

    def _count(self, name: str, folder: Path | None) -> int | None:
        if folder is None:
            self._unsupported.append(name)
            return None
        text = self._text(name, folder / name)
        if text.startswith("N/A"):  # the kernel's text for a device without port counters
            self._unsupported.append(name)
        elif text.isdecimal() and int(text) <= _MOST_COUNTED:
            return int(text)
        elif text:
            self._unreadable[name] = f"not a count: {text[:40]!r}"
        return None


def _after_colon(text: str) -> str:
    """The word after the colon, for example `ACTIVE` in `4: ACTIVE`."""
    return text.rpartition(":")[2].strip()
