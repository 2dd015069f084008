"""A simulated fleet in enforce mode, in which one agent sends anything that the wire format allows.

It answers every order of every group at random: with wrong ranks, addresses, results and reasons, at the wrong time,
repeatedly or never. It makes the ranks of its partners crash. The other agents are honest.
"""

import random
from functools import partial
from typing import Any

import pytest
from tests.lots import seeds
from tests.simulation.agent import COLLECTIVE, Agent
from tests.simulation.world import Build, Faults, Weather, World

from muster.check import Needs, Scope
from muster.model import Device, Finding, Inventory, RankResult, ServiceState, Severity, Topology, Verdict
from muster.quarantine_settings import BudgetSettings, MassEventSettings, QuarantineSettings, ReturnSettings
from muster.wire.messages import (
    Accepted,
    AnyCommand,
    Declined,
    Finished,
    InventoryReport,
    Join,
    Prepare,
    Progress,
    Ready,
    Start,
)
from muster_coordinator.model.events import InventorySeen
from muster_coordinator.model.sweep_records import SweepRecord
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.runtime.settings.policy_file import shipped_rows
from muster_coordinator.sweeps.recovery import AfterRestart

RULES = QuarantineSettings(
    mode="enforce",
    budget=BudgetSettings(share="100%", domain_share="100%"),
    mass_event=MassEventSettings(nodes=1000),
    returning=ReturnSettings(wait_s=0.0, pause_s=10.0, passes=1),
)
REASONS = ("busy", "unreachable", "lost", "silent", "run.killed", "run.raised", "too_few_devices", "stopping")
CODES = ("run.killed", "run.raised", "run.timeout", "run.preempted", "run.skipped", "collective.wrong_elements")
FIGURES = (0.0, -1.0, 1e-9, 0.1, 1.5, 1e6, 1e29, 1e308, None)
LONGEST_SWEEP_S = 3600


class Liar(Agent):
    """Sends anything, also what no real agent sends."""

    def __init__(self, world: World, name: str, lots: random.Random) -> None:
        super().__init__(world, name, Inventory())
        self._lots = lots
        self._first_rank = 0

    def boot(self) -> None:
        """Announces random devices, places and checks."""
        lots, self.up, self.beat = self._lots, True, self.world.now
        place = {level: lots.choice([None, "", "rack-0", "leaf-0", "rack-1", "evil"]) for level in ("rack", "leaf")}
        devices = (Device(index=index, uuid="same", model="any") for index in range(lots.choice([0, 8, 64])))
        check = COLLECTIVE.model_copy(
            update={
                "scope": lots.choice([*Scope]),
                "needs": lots.choice([*Needs]),
                "timeout_s": lots.choice([0.0, 20.0, 1e9]),
                "objective": lots.choice([None, "busbw_gbps", "made_up"]),
                "by_rail": lots.choice([None, "made_up"]),
                "params": lots.choice([{}, COLLECTIVE.params, {"type": "object", "required": ["nothing"]}]),
            }
        )
        inventory = Inventory(devices=tuple(devices), topology=Topology(block=lots.choice([None, ""]), **place))
        message = InventoryReport(**self._head(), inventory=inventory, checks=(check,))
        self.world.send(lambda: self.world.coordinator.take(InventorySeen(message)), reliable=True)
        self._presence(online=True)

    def tick(self) -> None:
        """Sends heartbeats, and now and then an online or offline presence."""
        super().tick()
        if self._lots.random() < 0.01:
            self._presence(online=self._lots.random() < 0.5)

    def obey(self, order: AnyCommand) -> None:
        """Answers soon, later, several times or never."""
        match order:
            case Join(group=group) | Start(group=group):
                self.group = group
            case Prepare(group=group):
                self.group, self._first_rank = group, order.first_rank
            case _:
                return
        honest = {Join: "accept", Prepare: "ready", Start: "finish"}[type(order)]
        for _ in range(self._lots.choice([0, 1, 1, 1, 2])):
            what = honest if self._lots.random() < 0.7 else self._lots.choice(["accept", "decline", "ready", "finish"])
            self.world.at(self._lots.choice([0.01, 0.01, 1.0, 4.0, 30.0]), partial(self._answer, what, order.group))
        if isinstance(order, Start) and self._lots.random() < 0.5:
            self.world.at(1.0, partial(self._hurt, order.group, self._lots.choice(CODES)))

    def _answer(self, what: str, group: str) -> None:
        lots, head = self._lots, self._head(group)
        match what:
            case "accept":
                address = lots.choice([self.name, "127.0.0.1", "node-0", "node-1", "10.0.0.1"])
                ranks = lots.choice([1, 1, 1, 8, 128])
                self._reply(Accepted(**head, address=address, port=lots.choice([1, 4000, 65535]), ranks=ranks))
            case "decline":
                self._reply(Declined(**head, reason=lots.choice(REASONS)))
            case "ready":
                self._reply(Ready(**head) if lots.random() < 0.5 else Progress(**head, text="nearly"))
            case "finish":
                self._reply(Finished(**head, ranks=tuple(self._results())))

    def _results(self) -> list[RankResult]:
        lots = self._lots
        verdict = lots.choice([*Verdict])
        finding = Finding(code=lots.choice(CODES), summary="a lie", severity=lots.choice([*Severity]))
        metrics: dict[str, Any] = {
            "busbw_gbps": lots.choice([lots.choice(FIGURES), [], [lots.choice(FIGURES)] * 100]),
            "sent_gbps": lots.choice(FIGURES),
            "arrived_last": lots.choice(FIGURES),
        }
        first, count = lots.choice([self._first_rank, 0, 7, 1 << 19]), lots.choice([1, 1, 1, 0, 8])
        return [
            RankResult(rank=rank, verdict=verdict, findings=(finding,), metrics=metrics, duration_s=1.0)
            for rank in range(first, first + count)
        ]

    def _hurt(self, group: str, code: str) -> None:
        """Ends the ranks of its partners with this finding."""
        verdict = Verdict.FAIL if code.startswith("collective") else Verdict.UNKNOWN
        for member in self._members(group):
            if member != self.name:
                self.world.agents[member]._end(group, verdict, code, {})


def sweep(world: World) -> SweepRecord:
    """Requests a sweep over all nodes; gives its record when it has ended."""
    name = world.sweep("adaptive")
    for _ in range(LONGEST_SWEEP_S):
        world.run(1)
        if world.coordinator.summary(name).ended_at is not None:
            return world.coordinator.sweeps[name]
    raise AssertionError(f"sweep {name} did not end within {LONGEST_SWEEP_S} s")


@pytest.mark.parametrize("seed", seeds(8))
def test_no_healthy_node_goes_out_of_service(seed: int) -> None:
    """Several sweeps convict no honest node. If a sweep leaves any node inconclusive, the liar is suspected too."""
    lots = random.Random(f"liars {seed}")
    build = Build(nodes=lots.choice([16, 20, 30]), rack=lots.choice([0, 4]))
    weather = Weather(delay_s=0.3)
    world = World(
        seed, build, Faults(noise=0.05), weather, AfterRestart.RESUME, rules=RULES, policy=Policy(shipped_rows())
    )
    liar = lots.choice([*world.agents])
    world.agents[liar] = Liar(world, liar, lots)
    world.agents[liar].boot()
    world.run(30)
    honest = [node for node in world.agents if node != liar]
    for _ in range(3):
        record = sweep(world)
        assert {failed.node for failed in record.failed_nodes} <= {liar}
        assert record.failed_fabric == ()
        assert all(liar in link.between for link in record.failed_links)
        named = {*record.inconclusive, *(failed.node for failed in record.failed_nodes)}
        assert liar in named or not named
        cases = {record.node: record.state for record in world.coordinator.fleet.quarantine_records()}
        assert {cases[node] for node in honest} <= {ServiceState.IN_SERVICE, ServiceState.ACCEPTING}
