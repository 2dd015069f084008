"""What one device has shown of one metric."""

from dataclasses import dataclass

from muster_coordinator.normal.normality import EARLIER_RUNS, RECENT_RUNS, Level, own_level_of


@dataclass(slots=True)
class Track:
    """A device's last values, as many as are needed, and its own level when there were enough."""

    uuid: str
    own: Level | None = None
    values: tuple[float, ...] = ()

    @property
    def typical(self) -> float | None:
        """What the device is compared by."""
        last = self.values[-RECENT_RUNS:]
        return sorted(last)[RECENT_RUNS // 2] if len(last) == RECENT_RUNS else None

    @property
    def noise(self) -> float | None:
        """How much its values differ, as a share of its level; None until that is known."""
        if self.own is None:
            return None
        return self.own.spread / abs(self.own.centre) if self.own.centre else 0.0

    def add(self, value: float) -> bool:
        """Notes a value; whether the own level is known since now."""
        self.values = (*self.values, value)
        learned = self.own is None and len(self.values) == EARLIER_RUNS
        if learned:
            self.own = own_level_of(self.values)
        if self.own is not None:
            self.values = self.values[-RECENT_RUNS:]
        return learned
