"""XIDs that stand: a broken GPU does not become healthy because it reports nothing for a while."""

from dataclasses import dataclass

from muster import Severity
from muster_plugins.shared.devices.reading import StandingXid
from muster_plugins.shared.xids import meaning

MOST_STANDING = 256
"""Maximum number of XIDs that are kept, by device and code. NVIDIA's catalogue has fewer codes."""


@dataclass(slots=True)
class _Standing:
    count: int
    last_at: float


class StandingXids:
    """The XIDs that the driver has reported since it was loaded and that still stand.

    An XID whose row in the catalogue is an ERROR stands until the driver is loaded again or this process ends. The GPU
    needs a reset or a reboot, and neither is possible while a process has NVML open. After a repair without a reboot,
    restart the agent. Every other XID stands for a window after its last report.
    """

    def __init__(self) -> None:
        self._standing: dict[tuple[int | None, int], _Standing] = {}

    def note(self, device: int | None, code: int, now: float) -> None:
        """Adds an XID of the device with this index; None if the device is unknown."""
        known = self._standing.pop((device, code), None)
        self._standing[device, code] = _Standing(count=known.count + 1 if known else 1, last_at=now)
        while len(self._standing) > MOST_STANDING:
            del self._standing[next(iter(self._standing))]

    def forget(self, now: float, window_s: float) -> None:
        """Drops XIDs that no longer stand."""
        self._standing = {
            (device, code): standing
            for (device, code), standing in self._standing.items()
            if meaning(code).severity is Severity.ERROR or now - standing.last_at <= window_s
        }

    def by_device(self) -> dict[int | None, tuple[StandingXid, ...]]:
        """The standing XIDs of each device, in the order of their last reports."""
        found: dict[int | None, tuple[StandingXid, ...]] = {}
        for (device, code), standing in self._standing.items():
            found[device] = (*found.get(device, ()), StandingXid(code, standing.count))
        return found
