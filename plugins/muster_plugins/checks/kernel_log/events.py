"""What a line of the kernel's log can mean: an event, the end of earlier ones, or the start of a network adapter."""

import re
from dataclasses import dataclass

from muster import Action, Severity
from muster.model import Data

ADDRESS = r"([0-9A-Fa-f]{4,8}):([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})(?:\.([0-7]))?"
"""A regular expression for a PCI address, with a group for each of its parts."""


class EventRate(Data):
    """The metric that counts events of one kind, and the seconds over which it does."""

    metric: str
    per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelEvent:
    """An event and its subject, equal for every repetition. `number` is the code of an XID or SXid.

    `name` is what the kernel calls the device, such as `nvme0`, where it tells no PCI address.
    """

    code: str
    summary: str
    severity: Severity
    action: Action
    source: str
    address: str | None = None
    name: str | None = None
    number: int | None = None
    rate: EventRate | None = None
    link: bool = False


@dataclass(frozen=True, slots=True)
class LinkStart:
    """The driver of the network adapter at `address` starts."""

    address: str


@dataclass(frozen=True, slots=True)
class EventEnd:
    """The end of events with these codes and this `action`, of one device, or of all devices without an address.

    It also ends events whose lines do not name a device. With `leaves`, events do not end: they get this severity.
    """

    codes: tuple[str, ...]
    action: Action
    address: str | None
    leaves: Severity | None = None

    def ends(self, event: KernelEvent) -> bool:
        """Whether this ends `event`."""
        of_this_device = self.address is None or event.address in {None, self.address}
        return of_this_device and event.code in self.codes and event.action is self.action


def normal_address(address: str) -> str | None:
    """A PCI address as in sysfs, `0000:17:00.0`; None if the text is not an address.

    NVIDIA's driver leaves the function out, and NVML gives the domain eight digits.
    """
    match = re.fullmatch(ADDRESS, address)
    if match is None:
        return None
    domain, bus, device, function = match.groups()
    return f"{int(domain, 16):04x}:{bus}:{device}.{function or 0}".lower()
