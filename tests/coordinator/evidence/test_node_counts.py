"""The counts of nodes are those of counting all nodes again, whatever has happened to them."""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.coordinator.fleets import check, head, run
from tests.coordinator.quarantining_drill import Stored, rules
from tests.coordinator.recount import assert_counts
from tests.lots import examples

from muster.check import Scope, Worse
from muster.errors import Refused
from muster.model import Device, Finding, Inventory, Severity, Topology, Verdict
from muster.transition import Effect, Mark, SchedulerNode
from muster.wire.messages import InventoryReport, Presence, Report
from muster_coordinator.evidence.node_counts import MOST_NAMED
from muster_coordinator.fleet import Fleet
from muster_coordinator.model import events
from muster_coordinator.model import quarantine_events as quarantine
from muster_coordinator.model.nodes import Misconduct
from muster_coordinator.model.sweep_records import FailedNode, SweepRecord, SweepState
from muster_coordinator.quarantine.policy import Policy
from muster_coordinator.runtime.settings.policy_file import shipped_rows

NODES = [f"n{number}" for number in range(10)]

COMPARED = check("gemm", Scope.NODE).model_copy(update={"compared": {"tflops": Worse.LOWER}})


class Counted:
    """A fleet under quarantine to which anything happens; an actor carries out what is decided, or fails."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.seq = 0
        self.stored = Stored()
        self.epoch = 0
        self.restart("n0")

    def feed(self, event: events.FleetEvent) -> None:
        try:
            commands = self.fleet.handle(event, self.now)
        except Refused:
            return  # a person asked for what cannot be
        for command in commands:
            self.stored.write(command)

    def restart(self, _node: str) -> None:
        """The next coordinator begins with what was stored."""
        self.epoch += 1
        self.fleet = Fleet(name="test", epoch=self.epoch, rules=rules(), policy=Policy(shipped_rows()))
        for command in self.fleet.restore(self.stored.saved(), self.now):
            self.stored.write(command)
        assert_counts(self.fleet, self.now)  # before any node can be heard
        self.feed(events.LinkCaughtUp())

    def join(self, node: str) -> None:
        gpus = tuple(Device(index=index, uuid=f"{node}-{index}", model="H100") for index in range(1 + self.seq % 2))
        place = Topology(block="b1", rack=f"r{self.seq % 3}")
        made = Inventory(machine_type=f"type-{self.seq % 2}", devices=gpus, topology=place)
        self.feed(events.InventorySeen(InventoryReport(**head(node), inventory=made, checks=(COMPARED,))))

    def heartbeat(self, node: str) -> None:
        message = Presence(**head(node), online=True, outbox=self.seq % 4)
        self.feed(events.PresenceSeen(message))

    def goodbye(self, node: str) -> None:
        self.feed(events.PresenceSeen(Presence(**head(node), online=False, goodbye=True)))

    def will(self, node: str) -> None:
        self.feed(events.PresenceSeen(Presence(**head(node), online=False)))

    def passes(self, node: str) -> None:
        self._measure(node, Verdict.PASS, 700.0)

    def fails(self, node: str) -> None:
        self._measure(node, Verdict.FAIL, 700.0)

    def breaks(self, node: str) -> None:
        """It is cordoned."""
        self.fails(node)
        self.fails(node)
        self.tick(node)

    def drops_off_the_bus(self, node: str) -> None:
        """Two of its GPUs have XID 79."""
        xids = [
            Finding(code="kernel_log.xid", summary="", severity=Severity.ERROR, device=device, evidence={"xid": 79})
            for device in range(2)
        ]
        self._measure(node, Verdict.FAIL, 700.0, tuple(xids))

    def is_slow(self, node: str) -> None:
        self._measure(node, Verdict.PASS, 300.0)

    def all_pass(self, _node: str) -> None:
        for node in NODES:
            self.passes(node)

    def misbehaves(self, node: str) -> None:
        self.feed(events.AgentMisbehaved(node, Misconduct.REFUSED, "bad"))

    def silence(self, _node: str) -> None:
        self.now += 100.0

    def tick(self, _node: str) -> None:
        self.now += 2.0
        self.feed(events.Ticked())

    def link_lost(self, _node: str) -> None:
        self.feed(events.LinkLost())

    def link_back(self, _node: str) -> None:
        self.feed(events.LinkRestored())
        self.feed(events.LinkCaughtUp())

    def surveyed(self, node: str) -> None:
        self.feed(quarantine.NodeSurveyed(actor="slurm", node=SchedulerNode(node=node, mark=Mark.NONE)))

    def unlisted(self, node: str) -> None:
        self.feed(quarantine.NodeNotListed(actor="slurm", node=node))

    def actor_fails(self, node: str) -> None:
        self._act(node, Effect.FAILED)

    def actor_works(self, node: str) -> None:
        self._act(node, Effect.DONE)

    def released(self, node: str) -> None:
        self.feed(quarantine.ReleaseRequested(node=node, by="ada", reason="mended", untested=True))

    def leaves(self, node: str) -> None:
        """It is silent, and no scheduler lists it any more."""
        self.surveyed(node)
        self.goodbye(node)
        self.unlisted(node)

    def removed(self, node: str) -> None:
        self.goodbye(node)
        self.forgotten(node)

    def forgotten(self, node: str) -> None:
        self.feed(quarantine.NodeForgotten(node=node, by="ada", reason="gone"))

    def retained(self, _node: str) -> None:
        self.feed(events.RetentionEnded(before=self.now, left_before=self.now))

    def _act(self, node: str, effect: Effect) -> None:
        if (latest := self.fleet.latest_transition(node)) is not None:
            transition = latest.transition.id
            self.feed(
                quarantine.ActionEnded(
                    node=node, transition=transition, actor="slurm", effect=effect, detail="so it ended"
                )
            )
            self.feed(quarantine.AllActorsCalled(node=node, transition=transition))

    def _measure(self, node: str, verdict: Verdict, tflops: float, findings: tuple[Finding, ...] = ()) -> None:
        self.seq += 1
        made = run(self.seq, verdict, node).model_copy(
            update={
                "started_at": self.now,
                **({"findings": findings} if findings else {}),
                "metrics": {"tflops": [tflops + self.seq % 3]},
                "facts": {"backend": "cuda", "devices": [0]},
            }
        )
        self.feed(events.ReportSeen(Report(**head(node), stream=f"s{self.seq}", after=0, runs=(made,))))


HAPPENINGS: list[Callable[[Counted, str], None]] = [
    *(Counted.join, Counted.heartbeat, Counted.goodbye, Counted.will, Counted.silence, Counted.tick),
    *(
        Counted.passes,
        Counted.fails,
        Counted.breaks,
        Counted.leaves,
        Counted.removed,
        Counted.drops_off_the_bus,
        Counted.is_slow,
        Counted.all_pass,
        Counted.misbehaves,
        Counted.restart,
    ),
    *(Counted.link_lost, Counted.link_back, Counted.surveyed, Counted.unlisted, Counted.actor_fails),
    *(Counted.actor_works, Counted.released, Counted.forgotten, Counted.retained),
]

happenings = st.lists(st.tuples(st.sampled_from(HAPPENINGS), st.sampled_from(NODES[:3])), min_size=10, max_size=40)


@settings(max_examples=examples(30))
@given(happenings)
def test_counts_are_those_of_counting_again(script: list[tuple[Callable[[Counted, str], None], str]]) -> None:
    """After every event, and while a node is silent that no tick has given up yet."""
    world = Counted()
    for node in NODES:
        world.join(node)
    for happens, node in script:
        happens(world, node)
        world.now += 0.1
        assert_counts(world.fleet, world.now)


def test_all_that_is_counted_happens() -> None:
    """A node of each kind: failed and cordoned, out of line, silent, given up, with an actor that fails for it."""
    world = Counted()
    for node in NODES:
        world.join(node)
    for _ in range(3):
        for node in NODES:
            world.is_slow(node) if node == "n7" else world.passes(node)
    world.breaks("n1")
    world.actor_fails("n1")
    world.drops_off_the_bus("n4")
    world.goodbye("n2")
    world.heartbeat("n3")
    assert_counts(world.fleet, world.now)
    counted = world.fleet.tally(world.now)
    assert counted.compared == {"baseline.outlier": 1}
    assert counted.lost == ("n2",)
    assert world.fleet.failing == {"slurm": 1}
    assert world.fleet.pending == len(NODES)
    for node in NODES:
        if node != "n1":
            world.actor_works(node)
    assert world.fleet.pending == 1
    assert counted.gpus_lost == {"drained": 2, "lost": 1}
    assert (counted.codes["kernel_log.xid"], counted.numbers) == (1, {("xid", 79): 1})
    assert [node.name for node in counted.named] == ["n1", "n4", "n7", "n2"]
    assert {"HEALTHY", "DEGRADED", "SUSPECT", "FAILED", "UNKNOWN"} == set(counted.health)
    assert "CORDONED" in counted.service
    world.silence("n1")
    assert set(world.fleet.tally(world.now).lost) == set(NODES)


def test_a_tally_names_the_worst() -> None:
    """Of more bad nodes than it names, and says how many it leaves out."""
    world = Counted()
    for number in range(MOST_NAMED):
        world.heartbeat(f"m{number}")  # UNKNOWN, because nothing has been measured
    for node in NODES:
        world.join(node)
        world.fails(node)
    counted = world.fleet.tally(world.now)
    assert [node.name for node in counted.named[: len(NODES) + 1]] == [*NODES, "m0"]
    assert (len(counted.named), counted.unnamed) == (MOST_NAMED, len(NODES))


def test_a_sweep_tests_nodes() -> None:
    """Those that it clears or convicts; the others count from when they joined."""
    world = Counted()
    for node in NODES:
        world.join(node)
    joined, world.now = world.now, world.now + 7200.0
    record = SweepRecord(
        id="s1",
        state=SweepState.FINISHED,
        strategy="pairs",
        check="gemm",
        nodes=tuple(NODES),
        created_at=world.now,
        cleared_nodes=("n1",),
        failed_nodes=(FailedNode(node="n2", code="gemm.slow", confidence=1.0, reasons=()),),
        inconclusive=("n3",),
    )
    world.fleet._sweeps._conclude(record, world.now)
    assert_counts(world.fleet, world.now)
    assert world.fleet.tally(world.now).not_tested_since(joined + 3600.0) == len(NODES) - 2
