"""What a simulated world is made of: nodes with their checks, how a scheduler has them, and what is stored."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from muster.model import Health
from muster.transition import Effect, Mark, SchedulerNode, Transition
from muster_coordinator.evidence.health import Evidence
from muster_coordinator.model.quarantine import FleetState, QuarantineRecord
from muster_coordinator.model.quarantine_events import (
    EraseNode,
    QuarantineCommand,
    SaveFleetState,
    SaveRecord,
    SaveTransition,
)
from muster_coordinator.model.transitions import TransitionRecord

OWN_CHECKS = ("gemm", "kernel_log", "nvml")
CODES = {"gemm": "gemm.slow", "kernel_log": "kernel_log.xid", "nvml": "nvml.gone", "collective": "collective.slow"}


@dataclass
class Entry:
    """A node as its scheduler has it; `mark` is the transition that our mark names, `changes` counts our cordons."""

    cordoned: bool = False
    mark: str | None = None
    opted_out: bool = False
    leaving: str | None = None
    listed: bool = True
    changes: int = 0

    @property
    def is_closed_by_us(self) -> bool:
        return self.cordoned and self.mark is not None

    def seen(self, node: str) -> SchedulerNode:
        whose = (Mark.OURS if self.cordoned else Mark.UNDONE) if self.mark else None
        mark = whose or (Mark.FOREIGN if self.cordoned else Mark.NONE)
        return SchedulerNode(node=node, mark=mark, transition=self.mark, opted_out=self.opted_out, leaving=self.leaving)

    def act(self, transition: Transition) -> Effect:
        """What an actor does: it undoes only what is ours, and leaves what others or an opt-out say."""
        whose = self.seen("any").mark
        if transition.dry_run:
            return Effect.WOULD
        is_undone = whose is Mark.UNDONE and (transition.by is None or transition.id == self.mark)
        if self.opted_out or whose is Mark.FOREIGN or (is_undone and transition.is_out):
            return Effect.LEFT
        self.changes += self.cordoned is not transition.is_out
        self.cordoned, self.mark = transition.is_out, transition.id if transition.is_out else None
        return Effect.DONE


@dataclass
class Store:
    """What is in the database: the last of each record, of each transition, and of the fleet's state."""

    records: dict[str, QuarantineRecord] = field(default_factory=dict)
    transitions: dict[str, TransitionRecord] = field(default_factory=dict)
    fleet: FleetState = FleetState()  # noqa: RUF009 (it is frozen)

    def write(self, commands: Iterable[QuarantineCommand]) -> None:
        for command in commands:
            match command:
                case SaveRecord(record=record):
                    self.records[record.node] = record
                case EraseNode(node=node):
                    del self.records[node]
                case SaveTransition(record=transition):
                    self.transitions[transition.transition.id] = transition
                case SaveFleetState(state=state):
                    self.fleet = state


@dataclass
class Node:
    """A simulated node: which checks find something, what they have found so far, and whether it is there."""

    name: str
    place: str
    broken: set[str] = field(default_factory=set)
    found: Counter[str] = field(default_factory=Counter)
    evidence: Evidence = field(default_factory=Evidence)
    online: bool = True

    @property
    def is_fit(self) -> bool:
        return self.evidence.verdicts.keys() >= set(OWN_CHECKS) and self.evidence.health is Health.HEALTHY

    @property
    def is_bad(self) -> bool:
        return bool(self.broken - {"kernel_log"})
