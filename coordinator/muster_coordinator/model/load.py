"""How much of what the agents send the coordinator can take."""

from dataclasses import dataclass

from muster.model import Data, Instant, Seconds


class CoordinatorLoad(Data):
    """The load of the coordinator over the last seconds.

    `lag_s` is how long a message waits for the coordinator. `taken_per_s` are the reports that it takes each second,
    `deferred_per_s` those for which it has no time: their agents keep the runs and send them again later. While it is
    overloaded, `overloaded_since` says since when, and `advice` what to change. `waiting_runs` are in the
    outboxes of all agents, as of their last heartbeats. Agents run background checks `slowdown` times less often than
    planned: 1 unless it is overloaded, or was a moment ago.
    """

    overloaded_since: Instant | None = None
    lag_s: Seconds = 0.0
    taken_per_s: float = 0.0
    deferred_per_s: float = 0.0
    waiting_runs: int = 0
    slowdown: int = 1
    advice: str = ""

    @property
    def is_overloaded(self) -> bool:
        return self.overloaded_since is not None


@dataclass(frozen=True, slots=True)
class LoadSeen:
    """The load was measured. Reports of the nodes `deferred` came since the last time, and were dropped unread."""

    load: CoordinatorLoad
    deferred: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ReportInvited:
    """There is time now for a report that was deferred."""

    node: str
    stream: str


@dataclass(frozen=True, slots=True)
class LogLoad:
    """Log that the coordinator is overloaded, or no longer."""

    load: CoordinatorLoad
