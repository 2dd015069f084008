"""The real `Fleet` of a simulation, with a store that survives its crashes."""

from functools import partial
from typing import TYPE_CHECKING, Any

from tests.simulation.promises import Promises

from muster.model import Run
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import (
    FleetCommand,
    FleetEvent,
    LinkCaughtUp,
    SaveGroup,
    SaveNode,
    SaveSweep,
    SendAck,
    SendCommand,
    StoreRuns,
    Ticked,
)
from muster_coordinator.model.nodes import NodeRecord
from muster_coordinator.model.stored_fleet import StoredFleet
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.sweeps.recovery import AfterRestart

if TYPE_CHECKING:
    from tests.simulation.world import World


PAUSED_S = (0.5, 40.0)
"""How long a paused leader stands still."""


class Coordinator:
    """The real `Fleet`, with a store that survives it. `takeovers` counts how often another one has led."""

    takeovers = 0

    def __init__(self, world: "World", after_restart: AfterRestart, **quarantine: Any) -> None:
        self._world = world
        self._quarantine = quarantine
        self._after_restart = after_restart
        self.epoch = 0
        self.nodes: dict[str, NodeRecord] = {}
        self.runs: dict[tuple[str, str, int], Run] = {}
        self.streams: dict[tuple[str, str], int] = {}
        self._sweeps: dict[str, SweepRecord] = {}
        self._groups: dict[str, SaveGroup] = {}
        self._promises = Promises()
        self.fleet = self._next_leader()

    @property
    def sweeps(self) -> dict[str, SweepRecord]:
        """Every sweep with its groups, as the store puts them together."""
        return {name: self._complete(record) for name, record in self._sweeps.items()}

    def summary(self, sweep: str) -> SweepRecord:
        """A sweep without its groups."""
        return self._sweeps[sweep]

    def _complete(self, record: SweepRecord) -> SweepRecord:
        groups = [saved for saved in self._groups.values() if saved.sweep == record.id]
        rounds = (
            stage.model_copy(update={"groups": tuple(it.record for it in groups if it.round == stage.number)})
            for stage in record.rounds
        )
        return record.model_copy(update={"rounds": tuple(rounds)})

    def _next_leader(self) -> Fleet:
        self.epoch = self._world.leading_epoch = self.epoch + 1
        return Fleet(name="simulated", epoch=self.epoch, after_restart=self._after_restart, **self._quarantine)

    def crash(self) -> None:
        """Forgets everything but the store, and starts again as the next leader."""
        self.takeovers += 1
        self.fleet = self._next_leader()
        unfinished = [sweep for sweep in self.sweeps.values() if sweep.ended_at is None]
        saved = StoredFleet(
            nodes=tuple(self.nodes.values()),
            runs=tuple(self.runs.values())[-50:],
            streams=dict(self.streams),
            sweeps=tuple(unfinished),
        )
        commands = self.fleet.restore(saved, self._world.now)
        commands += self.fleet.handle(LinkCaughtUp(), self._world.now)
        self._store(commands)
        self._send(commands)

    def stand_still(self, unsent: list[FleetCommand]) -> None:
        """Another one leads. Later this one sends what it had stored and not sent, and goes on until it stores again.

        The store refuses what it decides then, so it sends nothing of that.
        """
        former = self.fleet
        self.crash()

        def go_on() -> None:
            self._send(unsent)
            former.handle(Ticked(), self._world.now)

        self._world.at(self._world.random.uniform(*PAUSED_S), go_on)

    def take(self, event: FleetEvent) -> None:
        before = self._promises.about(event, self.fleet)
        commands = self.fleet.handle(event, self._world.now)
        self._promises.check(self.fleet, commands, self._world.now)
        assert before is None or self._promises.about(event, self.fleet) == before, "a late message has changed a sweep"
        self._store(commands)
        weather, chance = self._world.weather, self._world.random.random
        if len(commands) > 1 and chance() < weather.coordinator_crashes / 10:
            self.crash()  # when it has stored what it was about to say
        elif len(commands) > 1 and weather.coordinator_pauses and chance() < weather.coordinator_pauses:
            self.stand_still(commands)
        else:
            self._send(commands)

    def _store(self, commands: list[FleetCommand]) -> None:
        for command in commands:
            match command:
                case StoreRuns(node, stream, through, runs):
                    for run in (*runs, *(quiet.run for quiet in command.quiet)):
                        assert (node, stream, run.seq) not in self.runs, "a run was stored twice"
                        self.runs[node, stream, run.seq] = run
                    self.streams[node, stream] = through
                case SaveNode(record):
                    self.nodes[record.name] = record
                case SaveSweep(sweep):
                    self._promises.check_saved_sweep(sweep)
                    self._sweeps[sweep.id] = sweep
                case SaveGroup():
                    self._promises.check_saved_group(command.record)
                    self._groups[command.record.id] = command

    def _send(self, commands: list[FleetCommand]) -> None:
        for command in commands:
            match command:
                case SendAck(node, ack):
                    self._world.send(partial(self._world.agents[node].acked, ack))
                case SendCommand(node, order):
                    self._world.send(partial(self._world.agents[node].obey, order))
