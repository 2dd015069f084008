"""The sweeps that begin without a request: those of the schedules, and the sweep of new nodes."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from muster_coordinator.evidence.node import Node
from muster_coordinator.model.sweep_records import SweepRecord, SweepRequest
from muster_coordinator.sweeps.new_nodes import ORIGIN, NewNodes
from muster_coordinator.sweeps.schedule import GRACE_S, SweepSchedule

REMEMBERED_S = 86_400.0
"""How far back `Timetable.resume` looks. After a restart, a node that joined more than a day ago is not new."""


@dataclass(frozen=True, slots=True)
class Due:
    """A sweep that begins now."""

    origin: str
    request: SweepRequest


@dataclass(frozen=True, slots=True)
class SkippedSweep:
    """A sweep that was due and does not begin, and why."""

    origin: str
    reason: str


class Timetable:
    """The sweeps that begin without a request. Nothing is due before `resume`."""

    def __init__(self, schedules: Iterable[SweepSchedule] = (), new_nodes: NewNodes | None = None) -> None:
        self._schedules = tuple(schedules)
        self._new_nodes = new_nodes

    def resume(self, past: Iterable[SweepRecord], nodes: Mapping[str, Node], now: float) -> None:
        """Continues after a restart, from the sweeps of the last REMEMBERED_S seconds. Call it once, before `tick`."""
        last: dict[str, float] = {}
        swept: set[str] = set()
        for sweep in past:
            last[sweep.origin] = max(sweep.created_at, last.get(sweep.origin, 0.0))
            swept.update(sweep.nodes)
        for schedule in self._schedules:
            schedule.resume(last.get(schedule.origin), now)
        for name, node in nodes.items():
            if node.first_seen > now - REMEMBERED_S and name not in swept:
                self.note_joined(name)

    def note_joined(self, node: str) -> None:
        """Notes a node that was heard for the first time."""
        if self._new_nodes is not None:
            self._new_nodes.add(node)

    def note_swept(self, nodes: Iterable[str]) -> None:
        """Notes that a sweep of these nodes has begun, of any origin."""
        if self._new_nodes is not None:
            self._new_nodes.remove(nodes)

    def tick(self, nodes: Mapping[str, Node], running: Collection[str], now: float) -> list[Due | SkippedSweep]:
        """What is due now, each once. `running` are the origins of the running sweeps."""
        return [*self._scheduled(running, now), *self._of_new_nodes(nodes, now)]

    def _scheduled(self, running: Collection[str], now: float) -> Iterator[Due | SkippedSweep]:
        for schedule in self._schedules:
            late_s = schedule.take(now)
            if late_s is None:
                continue
            if late_s > GRACE_S:
                yield SkippedSweep(schedule.origin, f"no coordinator ran when it was due {late_s:.0f} s ago")
            elif schedule.origin in running:
                yield SkippedSweep(schedule.origin, "the sweep before it is still running")
            else:
                yield Due(schedule.origin, schedule.request)

    def _of_new_nodes(self, nodes: Mapping[str, Node], now: float) -> Iterator[Due]:
        request = None if self._new_nodes is None else self._new_nodes.take(nodes, now)
        if request is not None:
            yield Due(ORIGIN, request)
