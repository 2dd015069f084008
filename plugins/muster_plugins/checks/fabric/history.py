"""The history of each port since the agent's first reading: whether it was active, how long it is down, its flaps.

Pure. Times are seconds of any clock that does not go back.
"""

from collections.abc import Collection, Iterable

from pydantic import field_serializer

from muster_plugins.checks.fabric.counters import LastHour, saturated
from muster_plugins.checks.fabric.sysfs import Port

FLAP_DOWN_S = 25.0
"""A port that was down for at least this time and is active again has flapped once (gpud: a buffer below 30 s)."""

FLAP_WINDOW_S = 12 * 3600.0
"""How long a flap counts (gpud)."""


class PortReading(Port):
    """A port with its history: its highest rate when active, how long it has been down, and how often it came back.

    `remembered`: the port was active before, so it must be active. `counted` is the increase of its counters in the
    last hour, None at the first reading, which has nothing to compare with; `saturated` names counters at their limit.
    """

    remembered: bool = False
    best_rate_gbitps: float | None = None
    down_s: float = 0.0
    reactivations: int = 0
    counted: dict[str, int] | None = None
    saturated: tuple[str, ...] = ()

    @field_serializer("counted")
    def _without_zeros(self, counted: dict[str, int] | None) -> dict[str, int] | None:
        """Leaves out zeros, so that the facts of a healthy port stay short."""
        return counted and {name: count for name, count in counted.items() if count}


class PortHistory:
    """One port over time."""

    def __init__(self) -> None:
        self._best_rate_gbitps: float | None = None
        self._down: tuple[float, float] | None = None  # first and last seen down since it was active
        self._came_back: list[float] = []
        self._last_hour: LastHour | None = None
        self.once_active = False
        self.device = self.pci = ""

    def observe(self, port: Port, now: float) -> PortReading:
        """Adds what was read at `now`. An unreadable state is neither up nor down."""
        self.device, self.pci = port.device, port.pci
        if port.active:
            self._is_active(port, now)
        elif port.state:
            self._down = (self._down[0] if self._down else now, now)
        self._came_back = [moment for moment in self._came_back if moment > now - FLAP_WINDOW_S]
        return PortReading.model_validate(
            dict(port)
            | {
                "remembered": self.once_active,
                "best_rate_gbitps": self._best_rate_gbitps,
                "down_s": self._down[1] - self._down[0] if self._down else 0.0,
                "reactivations": len(self._came_back),
                "counted": self._count(port, now),
                "saturated": saturated(port.counters),
            }
        )

    def miss(self, now: float) -> float:
        """Notes that the port is missing at `now`. Returns the seconds for which it has been down or missing."""
        self._down = (self._down[0] if self._down else now, now)
        return now - self._down[0]

    def _is_active(self, port: Port, now: float) -> None:
        if self.once_active and self._down and self._down[1] - self._down[0] >= FLAP_DOWN_S:
            self._came_back.append(now)
        self._down = None
        self.once_active = not port.virtual
        self._best_rate_gbitps = max(self._best_rate_gbitps or 0.0, port.rate_gbitps or 0.0) or None

    def _count(self, port: Port, now: float) -> dict[str, int] | None:
        is_first = self._last_hour is None
        self._last_hour = self._last_hour or LastHour()
        counted = self._last_hour.count(port.counters, now)
        return None if is_first else counted


class FabricHistory:
    """All ports over time. A port that disappears is remembered only if it was active once."""

    def __init__(self) -> None:
        self._ports: dict[str, PortHistory] = {}

    def observe(
        self, ports: Iterable[Port], now: float, out_of_sight: Collection[str] = ()
    ) -> tuple[tuple[PortReading, ...], dict[str, float]]:
        """The ports with their history, and by name how long once active ports have been down or missing.

        Ports of the PCI functions `out_of_sight` are not missing.
        """
        readings = tuple(self._ports.setdefault(port.name, PortHistory()).observe(port, now) for port in ports)
        there = {reading.name for reading in readings}
        self._ports = {name: history for name, history in self._ports.items() if name in there or history.once_active}
        missing = [name for name in sorted(set(self._ports) - there) if self._ports[name].pci not in out_of_sight]
        return readings, {name: self._ports[name].miss(now) for name in missing}

    def device_at(self, pci: str) -> str | None:
        """The name of the device that was once active at a PCI address; None if none was."""
        return next((history.device for history in self._ports.values() if history.pci == pci), None)
