"""XIDs that stand: a broken GPU does not become healthy by saying nothing for a while."""

from dataclasses import dataclass

from muster import Severity
from muster_plugins.shared.devices.reading import StandingXid
from muster_plugins.shared.xids import meaning

MOST_STANDING = 256
"""Different XIDs that are kept, by device and code; NVIDIA's catalogue has fewer codes than that."""


@dataclass(slots=True)
class _Standing:
    count: int
    last_at: float


class StandingXids:
    """What the driver has reported since it was loaded, as far as it still stands.

    An XID whose row in the catalogue is an ERROR stands until the driver is loaded anew or this process ends: the GPU
    needs a reset or a reboot, neither of which can be done while a process holds NVML, and nothing else heals it. Any
    other stands for a window after it was last reported. Whoever has repaired a GPU restarts the agent.
    """

    def __init__(self) -> None:
        self._standing: dict[tuple[int | None, int], _Standing] = {}

    def note(self, device: int | None, code: int, now: float) -> None:
        """Takes up an XID of the device with this index; None when nobody can say of which one it is."""
        known = self._standing.pop((device, code), None)
        self._standing[device, code] = _Standing(count=known.count + 1 if known else 1, last_at=now)
        while len(self._standing) > MOST_STANDING:
            del self._standing[next(iter(self._standing))]

    def forget(self, now: float, window_s: float) -> None:
        """Drops what no longer stands."""
        self._standing = {
            (device, code): standing
            for (device, code), standing in self._standing.items()
            if meaning(code).severity is Severity.ERROR or now - standing.last_at <= window_s
        }

    def by_device(self) -> dict[int | None, tuple[StandingXid, ...]]:
        """What stands against each device, in the order in which it was last reported."""
        found: dict[int | None, tuple[StandingXid, ...]] = {}
        for (device, code), standing in self._standing.items():
            found[device] = (*found.get(device, ()), StandingXid(code, standing.count))
        return found
