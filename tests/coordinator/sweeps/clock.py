"""A timetable in virtual time, with what it has said by when."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from muster.check import CheckInfo, Needs, Scope
from muster.config import Settings
from muster_coordinator.evidence.announced_checks import AnnouncedChecks
from muster_coordinator.evidence.node import Node
from muster_coordinator.model.sweep_records import SweepRecord, SweepState
from muster_coordinator.runtime.settings.timetable import timetable_of
from muster_coordinator.sweeps.timetable import Due, SkippedSweep, Timetable

HOUR, DAY = 3600.0, 86_400.0
START = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
NIGHTLY = {"check": "collective", "cron": "0 2 * * *"}


def timetable(**sweeps: Any) -> Timetable:
    return timetable_of(Settings.model_validate({"fleet": "lab", "sweeps": sweeps}))


def scheduled(**settings: Any) -> Timetable:
    return timetable(schedules={"nightly": {**NIGHTLY, **settings}})


def check(scope: Scope = Scope.GROUP) -> CheckInfo:
    return CheckInfo(
        name="collective",
        summary="",
        scope=scope,
        needs=Needs.NOTHING,
        cadence_s=None,
        timeout_s=60.0,
        objective=None,
        params={},
    )


def past(origin: str, created_at: float, nodes: tuple[str, ...] = ("n1",)) -> SweepRecord:
    return SweepRecord(
        id="s",
        state=SweepState.FINISHED,
        strategy="pairs",
        check="collective",
        nodes=nodes,
        origin=origin,
        created_at=created_at,
    )


@dataclass
class Clock:
    """Plays a timetable from `now` on and keeps what it said, each with the time."""

    table: Timetable
    now: float = START
    nodes: dict[str, Node] = field(default_factory=dict)
    running: set[str] = field(default_factory=set)
    said: list[tuple[float, Due | SkippedSweep]] = field(default_factory=list)

    def resume(self, *sweeps: SweepRecord) -> "Clock":
        self.table.resume(sweeps, self.nodes, self.now)
        return self

    def play(self, seconds: float, step: float = 60.0) -> list[Due | SkippedSweep]:
        """Ticks for so long; what was said meanwhile."""
        before, end = len(self.said), self.now + seconds
        while self.now < end:
            self.now = min(self.now + step, end)
            self.said += [(self.now, it) for it in self.table.tick(self.nodes, self.running, self.now)]
        return [it for _, it in self.said[before:]]

    def join(self, name: str, scope: Scope = Scope.GROUP, **settings: Any) -> Node:
        """A node whose agent has just said what it is made of."""
        node = Node(name, self.now, self.now, **settings)
        node.announced = AnnouncedChecks.of([check(scope)])
        self.nodes[name] = node
        return node

    def join_as_new(self, name: str, scope: Scope = Scope.GROUP, **settings: Any) -> Node:
        self.table.note_joined(name)
        return self.join(name, scope, **settings)

    @property
    def times(self) -> list[str]:
        return [datetime.fromtimestamp(at, UTC).strftime("%m-%d %H:%M") for at, _ in self.said]
