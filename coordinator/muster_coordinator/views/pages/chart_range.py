"""The times that charts can show."""

from enum import StrEnum


class ChartRange(StrEnum):
    """How much time until now a chart shows, as it stands in the URL."""

    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"

    @property
    def words(self) -> str:
        """The time in words: `24 hours`."""
        return f"{self.value[:-1]} {'hours' if self is ChartRange.DAY else 'days'}"

    @property
    def seconds(self) -> float:
        """The length of the time."""
        return int(self.value[:-1]) * (3_600.0 if self is ChartRange.DAY else 86_400.0)

    @property
    def step_s(self) -> int:
        """The time between two points: 300 s in a day make 288 points, and no range has more than 360."""
        return {ChartRange.DAY: 300, ChartRange.WEEK: 1_800, ChartRange.MONTH: 7_200}[self]
