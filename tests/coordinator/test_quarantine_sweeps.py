"""Nodes that are tested in sweeps: in a fleet whose members do at once what they are told."""

from typing import Any

import pytest

from muster.check import CheckInfo, Needs, Scope
from muster.model import Inventory, RankResult, Run, ServiceState, Verdict
from muster.quarantine_settings import BudgetSettings, QuarantineSettings, ReturnSettings
from muster.wire.messages import (
    Accepted,
    Declined,
    Finished,
    InventoryReport,
    Join,
    Prepare,
    Presence,
    Ready,
    Report,
    Start,
)
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import (
    FleetCommand,
    GroupReplySeen,
    InventorySeen,
    LinkCaughtUp,
    PresenceSeen,
    ReportSeen,
    SaveNode,
    SaveSweep,
    SendCommand,
    SweepRequested,
    Ticked,
)
from muster_coordinator.model.quarantine_events import ReleaseRequested, SaveRecord
from muster_coordinator.model.stored_fleet import StoredFleet
from muster_coordinator.model.sweep_records import SweepRequest, SweepState
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.runtime.settings.policy_file import shipped_rows

NODES = ("n1", "n2", "n3", "n4", "n5")
SLOW = "n1"
A_DAY_S = 86_400.0
RULES = QuarantineSettings(
    mode="enforce",
    budget=BudgetSettings(share="100%", domain_share="100%"),
    returning=ReturnSettings(wait_s=0.0, pause_s=10.0, passes=1, partners=1),
)
COLLECTIVE = CheckInfo(
    name="collective",
    summary="",
    scope=Scope.GROUP,
    needs=Needs.IDLE_NODE,
    cadence_s=None,
    timeout_s=20.0,
    objective="gbps",
    params={"type": "object", "properties": {}},
)

GEMM = COLLECTIVE.model_copy(update={"name": "gemm", "scope": Scope.NODE, "objective": None})


class Members:
    """A fleet of nodes that reach so many GB/s in a group, or are `busy`, or never come to its end when `stuck`."""

    def __init__(
        self, saved: StoredFleet | None = None, epoch: int = 1, *, mode: str = "enforce", silent: str | None = None
    ) -> None:
        self.now = 1_800_000_000.0 + A_DAY_S * epoch
        self.epoch = epoch
        self.gbps = dict.fromkeys(NODES, 10.0)
        self.busy: set[str] = set()
        self.stuck = False
        self.orders: list[SendCommand] = []
        self.stored: dict[type, dict[str, Any]] = {SaveNode: {}, SaveRecord: {}, SaveSweep: {}}
        self._groups: dict[str, set[str]] = {}
        self._ranks: dict[str, int] = {}
        self.fleet = Fleet(
            name="f", epoch=epoch, rules=RULES.model_copy(update={"mode": mode}), policy=Policy(shipped_rows())
        )
        self._obey(self.fleet.restore(saved or StoredFleet(nodes=(), runs=(), streams={}), self.now))
        for node in NODES:
            if node != silent:
                self.hear(node)

    def hear(self, node: str) -> None:
        """A node connects and passes a check of its own."""
        report = InventoryReport(sent_at=self.now, node=node, inventory=Inventory(), checks=(COLLECTIVE, GEMM))
        self.feed(PresenceSeen(Presence(sent_at=self.now, node=node, online=True)))
        self.feed(InventorySeen(report))
        self.feed(ReportSeen(self._passes(node)))

    def announce(self, node: str, **otherwise: Any) -> None:
        """A node announces the check differently from the others."""
        check = COLLECTIVE.model_copy(update=otherwise)
        report = InventoryReport(sent_at=self.now, node=node, inventory=Inventory(), checks=(check, GEMM))
        self.feed(InventorySeen(report))

    def restarted(self, silent: str | None = None) -> "Members":
        """The next leadership over what was stored, which does not hear of one node for now."""
        nodes, records, sweeps = (tuple(kept.values()) for kept in self.stored.values())
        unfinished = tuple(sweep for sweep in sweeps if sweep.ended_at is None)
        again = Members(
            StoredFleet(nodes=nodes, runs=(), streams={}, quarantine=records, sweeps=unfinished),
            self.epoch + 1,
            silent=silent,
        )
        again.feed(LinkCaughtUp())
        return again

    def feed(self, event: Any) -> None:
        self._obey(self.fleet.handle(event, self.now))

    def wait(self, seconds: int) -> None:
        for _ in range(seconds):
            self.now += 1.0
            self.feed(Ticked())

    def sweep(self) -> None:
        """A sweep over all."""
        self.feed(SweepRequested(f"s{self.now:.0f}", SweepRequest(check="collective")))
        self.wait(5)

    def release(self) -> None:
        self.feed(ReleaseRequested(node=SLOW, by="ada", reason="its cable is swapped"))
        self.wait(5)

    def _passes(self, node: str) -> Report:
        """A run of the node's own by which it is healthy."""
        done = Run(
            id=f"{node}-{self.epoch}",
            node=node,
            check="gemm",
            verdict=Verdict.PASS,
            started_at=self.now,
            duration_s=0.1,
            seq=1,
        )
        return Report(sent_at=self.now, node=node, stream=done.id, after=0, runs=(done,))

    @property
    def case(self) -> Any:
        return self.fleet.case(SLOW)

    def _obey(self, commands: list[FleetCommand]) -> None:
        for command in commands:
            match command:
                case SaveNode(record):
                    self.stored[SaveNode][record.name] = record
                case SaveRecord(record=record):
                    self.stored[SaveRecord][record.node] = record
                case SaveSweep(record):
                    self.stored[SaveSweep][record.id] = record
        self.orders += [command for command in commands if isinstance(command, SendCommand)]
        for command in commands:
            if isinstance(command, SendCommand) and (reply := self._reply(command)) is not None:
                self.feed(GroupReplySeen(reply))

    def _reply(self, sent: SendCommand) -> Any:
        head: dict[str, Any] = {"sent_at": self.now, "node": sent.node, "group": getattr(sent.command, "group", "")}
        match sent.command:
            case Join() if sent.node in self.busy:
                return Declined(**head, reason="not_idle", detail="a job runs")
            case Join(group=group):
                self._groups.setdefault(group, set()).add(sent.node)
                return Accepted(**head, address=sent.node, port=1, ranks=1)
            case Prepare(first_rank=rank):
                self._ranks[sent.node] = rank
                return Ready(**head)
            case Start(group=group) if not self.stuck:
                rank = self._ranks[sent.node]
                reached = {"gbps": min(self.gbps[node] for node in self._groups[group])}
                ranks = (RankResult(rank=rank, verdict=Verdict.PASS, metrics={**reached}, duration_s=1.0),)
                return Finished(**head, ranks=ranks)
        return None


@pytest.fixture
def convicted() -> Members:
    """A fleet of which one node was found to be slow by a sweep, and was taken out."""
    members = Members()
    assert members.case.state is ServiceState.IN_SERVICE
    members.gbps[SLOW] = 3.0
    members.sweep()
    assert (members.case.state, members.case.requirement.codes) == (ServiceState.CORDONED, ("collective.slow",))
    return members


def test_who_is_as_slow_as_before_does_not_come_back(convicted: Members) -> None:
    """Though one partner was asked for: in a single pair, nothing would say that it is slow."""
    convicted.release()
    assert convicted.case.state is ServiceState.CORDONED
    assert len(convicted.case.cordoned_at) == 2


def test_who_is_repaired_comes_back(convicted: Members) -> None:
    """By the same sweep."""
    convicted.gbps[SLOW] = 10.0
    convicted.release()
    assert convicted.case.state is ServiceState.IN_SERVICE


def test_a_node_that_changes_the_scope_of_the_check_is_not_tested(convicted: Members) -> None:
    """It stays in probation: it must pass the check as most nodes announce it, and no order is sent."""
    convicted.announce(SLOW, scope=Scope.NODE)
    convicted.orders.clear()
    convicted.release()
    convicted.wait(60)
    assert convicted.case.state is ServiceState.PROBATION
    assert convicted.case.probation.trouble == "collective reported UNKNOWN"
    assert convicted.orders == []


def test_a_neighbour_that_differs_does_not_delay_the_return(convicted: Members) -> None:
    """Another node becomes the partner."""
    convicted.announce("n2", objective="latency_s")
    convicted.gbps[SLOW] = 10.0
    convicted.release()
    assert convicted.case.state is ServiceState.IN_SERVICE


def test_three_free_partners_are_enough_to_convict_again(convicted: Members) -> None:
    """The earlier sweep suspects the node, so it meets all of them."""
    convicted.busy = {"n2"}
    convicted.release()
    assert convicted.case.state is ServiceState.CORDONED
    assert len(convicted.case.cordoned_at) == 2


@pytest.mark.parametrize("busy", [{"n2", "n3"}, {"n4", "n5"}, {"n2", "n3", "n4"}])
def test_a_round_without_partners_enough_does_not_count(convicted: Members, busy: set[str]) -> None:
    """While work keeps some of them away, though the sweep has cleared the node."""
    convicted.busy = busy
    convicted.release()
    assert (convicted.case.state, convicted.case.probation.trouble) == (
        ServiceState.PROBATION,
        "collective reported UNKNOWN",
    )
    convicted.busy = set()
    convicted.wait(20)
    assert convicted.case.state is ServiceState.CORDONED


def test_a_sweep_that_tests_a_node_ends_with_its_coordinator(convicted: Members) -> None:
    """The next one begins another, and the partners are not kept for both."""
    convicted.stuck = True
    convicted.release()
    (old,) = convicted.fleet.sweeps()
    again = convicted.restarted()
    again.wait(20)  # partners were not known to be healthy at first
    ended, new = again.stored[SaveSweep].values()
    assert (ended.id, ended.state, ended.reason) == (old.id, SweepState.ABORTED, "the coordinator was restarted")
    assert (new.origin, new.state) == (f"test of {SLOW}", SweepState.FINISHED)


def test_a_second_opinion_that_its_node_was_too_late_for_is_asked_for_again() -> None:
    """After a restart it is not heard of until it counts as lost. What was found is too old to count without."""
    observed = Members(mode="observe")
    observed.gbps[SLOW] = 3.0
    observed.sweep()
    again = observed.restarted(silent=SLOW)
    assert again.case.requirement.unproven == ("collective",)
    again.wait(100)
    assert SLOW in again.fleet.view(again.now).lost
    for _ in range(100):  # it is asked for again after half an hour
        for node in NODES:
            again.hear(node)
        again.wait(20)
    assert again.case.requirement is None
