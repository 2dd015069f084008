"""The fleet: what each event leads to, and what people may ask for."""

import itertools
from typing import Any

import pytest

from muster.check import CheckInfo, Needs, Scope, Worse
from muster.errors import Refused
from muster.model import Action, Finding, Health, Inventory, Run, ServiceState, Severity, Topology, Verdict
from muster.wire.messages import InventoryReport, Join, PluginInfo, Presence, Report
from muster_coordinator.events import (
    Announce,
    BaselineReset,
    Command,
    InventorySeen,
    PresenceSeen,
    ReportSeen,
    RunRequested,
    SaveBaseline,
    SaveGroup,
    SaveNode,
    SaveStep,
    SendAck,
    SendCommand,
    StoreRuns,
    SweepAbortRequested,
    SweepRequested,
    Tell,
    Ticked,
)
from muster_coordinator.fleet import Fleet
from muster_coordinator.quarantine.events import SaveAction, SaveCase
from muster_coordinator.records import NodeRecord, NodeView, Saved
from muster_coordinator.sweep_records import (
    Ending,
    GroupRecord,
    GroupState,
    MemberRecord,
    RoundRecord,
    SweepRecord,
    SweepRequest,
    SweepState,
)
from muster_coordinator.sweeps.group import ABORT_GRACE_S
from muster_coordinator.sweeps.recovery import AfterRestart
from muster_coordinator.topology.learned import Pair


def check(name: str, scope: Scope, **params: Any) -> CheckInfo:
    return CheckInfo(
        name=name,
        summary=name,
        scope=scope,
        needs=Needs.NOTHING,
        cadence_s=None,
        timeout_s=20.0,
        objective=None,
        params={"type": "object", "properties": params, "additionalProperties": False},
    )


CHECKS = (check("gemm", Scope.NODE, size={"type": "integer", "minimum": 1}), check("collective", Scope.GROUP))


def head(node: str) -> dict[str, Any]:
    return {"id": f"m-{node}", "sent_at": 1.0, "node": node}


def inventory(node: str, rack: str | None = None, **more: Any) -> InventorySeen:
    made = Inventory(topology=Topology(rack=rack))
    return InventorySeen(InventoryReport(**head(node), inventory=made, checks=CHECKS, **more))


def presence(node: str, *, online: bool = True) -> PresenceSeen:
    return PresenceSeen(Presence(**head(node), online=online, outbox=3))


def run(seq: int, verdict: Verdict = Verdict.PASS, node: str = "a") -> Run:
    finding = Finding(code="gemm.slow", summary="slow", severity=Severity.ERROR, action=Action.REPLACE)
    findings = (finding,) if verdict is Verdict.FAIL else ()
    return Run(
        id=f"r{seq}",
        node=node,
        check="gemm",
        verdict=verdict,
        findings=findings,
        started_at=float(seq),
        duration_s=0.1,
        seq=seq,
    )


def report(*runs: Run, after: int = 0) -> ReportSeen:
    return ReportSeen(Report(**head(runs[0].node), stream="s", after=after, runs=runs))


def sweep(name: str, *, check: str = "collective", **asked: Any) -> SweepRequested:
    return SweepRequested(name, SweepRequest(check=check, **asked))


def fleet(*nodes: str) -> Fleet:
    made = Fleet(name="test", epoch=7)
    for node in nodes:
        made.handle(inventory(node), 0.0)
    return made


def views(made: Fleet, now: float) -> list[NodeView]:
    """All nodes as they are served."""
    found = (made.node(name, now) for name in made.names)
    return [view for view in found if view is not None]


def kinds(commands: list[Command]) -> list[str]:
    """The commands in short: their names, with the kind of what they tell, announce or send.

    What the quarantine writes down and announces comes with nearly all of them, and is left out.
    """
    words = []
    for command in commands:
        match command:
            case SaveCase() | SaveAction() | SaveStep() | Announce("case"):
                pass
            case Tell(entry):
                words.append(f"tell {entry.kind}")
            case Announce(kind):
                words.append(f"announce {kind}")
            case SendCommand(node, order):
                words.append(f"{order.kind} {node}")
            case _:
                words.append(type(command).__name__)
    return words


def test_a_new_node_joins() -> None:
    """The first sign of life makes a node known; the next ones change nothing that is stored."""
    made = Fleet(name="test", epoch=7)
    assert kinds(made.handle(presence("a"), 5.0)) == ["tell joined", "SaveNode", "announce node"]
    assert made.handle(presence("a"), 6.0) == []
    view = made.node("a", 6.0)
    assert view is not None
    assert (view.health, view.service, view.lost, view.last_seen, view.outbox) == (
        Health.UNKNOWN,
        ServiceState.ACCEPTING,
        False,
        6.0,
        3,
    )
    assert made.node("b", 6.0) is None


def test_the_will_of_an_unknown_node_means_nothing() -> None:
    """A broker may still hold the will of a node that this fleet never met."""
    made = Fleet(name="test", epoch=7)
    assert made.handle(presence("a", online=False), 5.0) == []
    assert views(made, 5.0) == []


def test_a_node_is_lost_after_three_heartbeats_and_comes_back() -> None:
    """Each step is told once; lost says nothing about health."""
    made = fleet("a")
    assert made.handle(Ticked(), 30.0) == []
    assert kinds(made.handle(Ticked(), 30.1)) == ["tell lost", "SaveNode", "announce node"]
    assert made.handle(Ticked(), 31.0) == []
    assert [view.lost for view in views(made, 31.0)] == [True]
    assert kinds(made.handle(presence("a"), 40.0)) == ["tell back", "SaveNode", "announce node"]
    assert kinds(made.handle(presence("a", online=False), 41.0)) == ["tell lost", "SaveNode", "announce node"]
    assert made.handle(presence("a", online=False), 42.0) == []


def test_the_first_healthy_run_puts_a_node_into_service() -> None:
    """The run is stored before it is acknowledged, and the story names it as the cause."""
    made = fleet("a")
    commands = made.handle(report(run(1)), 1.0)
    assert kinds(commands) == [
        "StoreRuns",
        "announce run",
        "tell health",
        "announce node",
        "SendAck",
        "SaveNode",
        "announce node",
        "tell service",
    ]
    assert commands[0] == StoreRuns("a", "s", 1, (run(1),))
    told = [command.entry for command in commands if isinstance(command, Tell)]
    (action,) = (command.action for command in commands if isinstance(command, SaveAction))
    assert (action.transition.before, action.transition.after) == ("ACCEPTING", "IN_SERVICE")
    assert [(entry.cause, entry.text) for entry in told] == [
        ("r1", "UNKNOWN to HEALTHY: everything passes"),
        (action.transition.id, "ACCEPTING to IN_SERVICE: it has been examined and is healthy"),
    ]


def test_a_new_node_waits_for_every_check_that_runs_by_itself() -> None:
    """The first pass makes it HEALTHY, but not fit for work; one that needs an idle node is not waited for."""
    soon, idle = ("nvml", "host"), ("training",)
    rhythm = {"cadence_s": 15.0}
    checks = (
        *(check(name, Scope.NODE).model_copy(update=rhythm) for name in soon),
        *(check(name, Scope.NODE).model_copy(update=rhythm | {"needs": Needs.IDLE_DEVICE}) for name in idle),
    )
    made = Fleet(name="test", epoch=7)
    services = []
    for seq, name in enumerate(("plugins", "nvml"), 1):
        made.handle(report(run(seq).model_copy(update={"check": name}), after=seq - 1), 1.0)
        if name == "plugins":
            made.handle(InventorySeen(InventoryReport(**head("a"), inventory=Inventory(), checks=checks)), 1.5)
        services += [view.service for view in views(made, 2.0)]
    last = run(3, Verdict.SKIPPED).model_copy(update={"check": "host"})
    assert kinds(made.handle(report(last, after=2), 3.0))[2:] == [
        "SendAck",
        "SaveNode",
        "announce node",
        "tell service",
    ]
    services += [view.service for view in views(made, 3.0)]
    assert services == [ServiceState.ACCEPTING, ServiceState.ACCEPTING, ServiceState.IN_SERVICE]


def test_a_node_whose_checks_are_not_known_stays_out_of_service() -> None:
    """That its plugins loaded is the first that it reports."""
    made = Fleet(name="test", epoch=7)
    made.handle(report(run(1).model_copy(update={"check": "plugins"})), 1.0)
    (view,) = views(made, 1.0)
    assert (view.health, view.service) == (Health.HEALTHY, ServiceState.ACCEPTING)


def test_another_pass_is_stored_and_acknowledged_and_nothing_else() -> None:
    """The usual case does the least."""
    made = fleet("a")
    made.handle(report(run(1)), 1.0)
    commands = made.handle(report(run(2), after=1), 2.0)
    assert kinds(commands) == ["StoreRuns", "announce run", "SendAck"]


def test_duplicates_and_gaps_are_answered_and_counted() -> None:
    """A duplicate is acknowledged again, a gap asks for everything from the oldest."""
    made = fleet("a")
    made.handle(report(run(1)), 1.0)
    answers = [made.handle(report(run(1)), 2.0), made.handle(report(run(9), after=8), 3.0)]
    acks = [command.ack for commands in answers for command in commands if isinstance(command, SendAck)]
    assert [(ack.stored_through, ack.gap) for ack in acks] == [(1, False), (1, True)]
    assert [kinds(commands) for commands in answers] == [["SendAck"], ["SendAck"]]
    assert (made.counts.runs, made.counts.duplicates, made.counts.gaps) == (1, 1, 1)


def test_a_failure_is_told_with_its_findings() -> None:
    """The story says what was found, then from what to what, why, and because of which findings."""
    made = fleet("a")
    told = [command.entry for command in made.handle(report(run(1, Verdict.FAIL)), 1.0) if isinstance(command, Tell)]
    assert [(entry.kind, entry.text, entry.cause) for entry in told] == [
        ("found", "gemm.slow: slow", "r1"),
        ("health", "UNKNOWN to SUSPECT: gemm failed; a second failure confirms it, two passes in a row clear it", "r1"),
    ]
    assert told[1].data["findings"] == ["gemm.slow"]
    view = made.node("a", 1.0)
    assert view is not None
    assert (view.health, [finding.code for finding in view.findings]) == (Health.SUSPECT, ["gemm.slow"])
    assert "tell found" not in kinds(made.handle(report(run(2, Verdict.FAIL), after=1), 2.0))


def test_a_plugin_that_failed_is_told_once() -> None:
    """The same inventory again is no news."""
    broken = PluginInfo(name="bad", distribution=None, version=None, status="failed", error="boom")
    made = fleet("a")
    assert kinds(made.handle(inventory("a", plugins=(broken,)), 1.0)) == [
        "tell plugin_failed",
        "SaveNode",
        "announce node",
    ]
    assert made.handle(inventory("a", plugins=(broken,)), 2.0) == []


def test_a_run_is_ordered_under_the_id_that_was_asked_for() -> None:
    """The order expires, carries the epoch, and names the request as its cause."""
    told, order = fleet("a").handle(RunRequested("run-1", "a", "gemm", {"size": 8}), 10.0)
    assert kinds([told, order]) == ["tell run_requested", "run_check a"]
    assert isinstance(order, SendCommand)
    assert (order.command.epoch, order.command.cause, order.command.expires_at) == (7, "run-1", 40.0)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (RunRequested("r", "x", "gemm", {}), "unknown node 'x'"),
        (RunRequested("r", "lost", "gemm", {}), "node 'lost' is lost"),
        (RunRequested("r", "a", "gem", {}), "did you mean 'gemm'"),
        (RunRequested("r", "a", "collective", {}), "strategy single"),
        (RunRequested("r", "a", "gemm", {"sise": 1}), "did you mean 'size'"),
        (RunRequested("r", "a", "gemm", {"size": 0}), "parameter 'size' of check 'gemm': 0 is less than"),
        (sweep("s", strategy="pear"), "did you mean 'pairs'"),
        (sweep("s", check="colective", strategy="pairs"), "did you mean 'collective'"),
        (sweep("s", check="gemm", strategy="pairs"), "its only valid strategy is single"),
        (sweep("s", strategy="pairs", nodes=("a",)), "needs at least 2 nodes"),
        (sweep("s", strategy="pairs", nodes=("a", "lost")), "node 'lost' is lost"),
        (sweep("s", strategy="pairs", nodes=("a", "x")), "unknown node 'x'"),
        (sweep("s", strategy="pairs", nodes=("a", "b"), select="rack=r1"), "contradict each other"),
        (sweep("s", strategy="pairs", select="rack=r9"), "unknown rack 'r9'"),
        (sweep("s", strategy="pairs", select="a,lost"), "node 'lost' is lost"),
        (sweep("s", strategy="whole", pairing="random"), "is for strategy pairs"),
        (sweep("s", strategy="pairs", pairing="interrack"), "did you mean 'inter_rack'"),
        (sweep("s", strategy="pairs", pairing="rail"), "needs a check that measures rails apart"),
        (sweep("s", max_parallel="1"), "max_parallel 1 is too few: adaptive needs 2 nodes at once"),
        (sweep("s", max_parallel="110%"), "neither a number of nodes"),
        (sweep("s", max_parallel="2.5"), "neither a number of nodes"),
        (sweep("s", max_parallel="half"), "such as 25%"),
        (sweep("s", strategy="whole", max_parallel="50%"), "contradicts strategy whole"),
        (sweep("s", max_node_s=60.0), "less than the 70 node-seconds that one group of 2 takes"),
        (sweep("s", strategy="pairs", params={"x": 1}), "unknown parameter"),
        (sweep("running", strategy="pairs"), "there is a sweep 'running' already"),
        (SweepAbortRequested("other", "enough"), "unknown sweep 'other'"),
    ],
)
def test_requests_that_are_not_valid_are_refused(event: Any, message: str) -> None:
    """The refusal says what would be valid, and nothing has changed."""
    made = fleet("a", "b", "c", "d", "lost")
    made.handle(presence("lost", online=False), 1.0)
    made.handle(sweep("running", strategy="pairs", nodes=("c", "d")), 1.0)
    before = (views(made, 1.0), made.sweeps())
    with pytest.raises(Refused, match=message):
        made.handle(event, 1.0)
    assert (views(made, 1.0), made.sweeps()) == before


def test_a_value_that_fits_none_of_several_kinds_is_told_why_not() -> None:
    """As an optional number is: the message names what would be right."""
    made = Fleet(name="test", epoch=7)
    optional = check("gemm", Scope.NODE, size={"anyOf": [{"type": "integer"}, {"type": "null"}]})
    made.handle(InventorySeen(InventoryReport(**head("a"), inventory=Inventory(), checks=(optional,))), 0.0)
    with pytest.raises(Refused, match="'x' is not of type 'integer' and 'x' is not of type 'null'"):
        made.handle(RunRequested("r", "a", "gemm", {"size": "x"}), 0.0)


def test_a_broken_schema_from_a_node_is_refused_and_fetches_nothing() -> None:
    """A reference to somewhere else is not followed."""
    made = Fleet(name="test", epoch=7)
    bad = check("gemm", Scope.NODE, size={"$ref": "http://127.0.0.1:1/schema"})
    made.handle(InventorySeen(InventoryReport(**head("a"), inventory=Inventory(), checks=(bad,))), 0.0)
    with pytest.raises(Refused, match="broken schema"):
        made.handle(RunRequested("r", "a", "gemm", {"size": 1}), 0.0)


def test_a_sweep_takes_whoever_is_there_in_topology_order() -> None:
    """Neighbours stand next to each other; who is lost is left out, with the reason."""
    made = Fleet(name="test", epoch=7)
    for node, rack in (("a", "r2"), ("b", "r1"), ("c", "r2"), ("d", "r1"), ("lost", "r1")):
        made.handle(inventory(node, rack), 0.0)
    made.handle(presence("lost", online=False), 1.0)
    commands = made.handle(sweep("s", strategy="whole"), 1.0)
    assert [word for word in kinds(commands) if word.startswith("join")] == ["join b", "join d", "join a", "join c"]
    record = made.sweep("s")
    assert record is not None
    assert (record.nodes, record.state) == (("b", "d", "a", "c"), SweepState.RUNNING)
    assert record.absent == {"lost": "is lost: last heard of at 1970-01-01T00:00:00.000Z"}


def test_the_topology_file_goes_before_what_agents_say() -> None:
    """In the order of ranks, in selections and in views; nodes that only it knows are absent."""
    declared = {"a": Topology(rack="r1"), "b": Topology(rack="r0"), "ghost": Topology(rack="r1")}
    made = Fleet(name="test", epoch=7, declared=declared)
    for node in ("a", "b", "c"):
        made.handle(inventory(node, "r1"), 0.0)
    made.handle(sweep("s", strategy="whole", select="rack=r0,r1"), 1.0)
    made.handle(sweep("t", strategy="whole", select="rack=r1"), 1.0)
    first, second = made.sweeps()
    assert (first.nodes, second.nodes) == (("b", "a", "c"), ("a", "c"))
    assert second.absent == {"ghost": "no agent was ever heard of from there"}
    assert [view.topology.rack for view in views(made, 1.0)] == ["r1", "r0", "r1"]


def test_a_sweep_shows_at_which_leaves_nodes_stand() -> None:
    """Once the pairs have met: whoever said nothing of its leaf gets the one that shows, and it outlives a restart."""
    made = fleet(*(f"n{number}" for number in range(8)))
    near, far = [10.0, 5.0]
    pairs = [
        Pair(f"n{one}", f"n{other}", near if one // 4 == other // 4 else far)
        for one, other in itertools.combinations(range(8), 2)
    ]
    commands = made._roster.learn_leaves(pairs, "s", 1.0)
    assert kinds(commands) == ["tell place", "SaveNode", "announce node"] * 8
    leaves = {view.name: view.topology.leaf for view in views(made, 1.0)}
    assert leaves["n0"] == leaves["n3"] != leaves["n4"] == leaves["n7"]
    assert made._roster.learn_leaves(pairs, "t", 2.0) == []
    again = Fleet(name="test", epoch=8)
    again.restore(Saved(nodes=tuple(c.record for c in commands if isinstance(c, SaveNode))), 3.0)
    assert {view.name: view.topology.leaf for view in views(again, 3.0)} == leaves


def test_an_aborted_sweep_frees_its_nodes() -> None:
    """Its members are told to leave, its record stays to be asked for, and aborting again does nothing."""
    made = fleet("a", "b")
    made.handle(sweep("s", strategy="pairs"), 1.0)
    commands = kinds(made.handle(SweepAbortRequested("s", "enough"), 2.0))
    assert commands[:4] == ["abort a", "abort b", "SaveSweep", "announce sweep"]
    assert commands[-2:] == ["tell inconclusive"] * 2
    record = made.sweep("s")
    assert record is not None
    assert (record.state, record.verdict, record.reason) == (SweepState.ABORTED, Verdict.UNKNOWN, "enough")
    assert made.handle(SweepAbortRequested("s", "enough"), 3.0) == []
    assert "join a" in kinds([*made.handle(sweep("s2", strategy="pairs"), 3.0), *made.handle(Ticked(), 5.0)])


def test_sweeps_share_the_fleet_and_the_more_urgent_one_goes_first() -> None:
    """No node is in two groups; who waits gets its nodes in the order of priorities, not of requests."""
    made = fleet("a", "b", "c", "d")
    assert len([word for word in kinds(made.handle(sweep("first", strategy="whole"), 1.0)) if "join" in word]) == 4
    for name, priority in (("low", -1), ("high", 5), ("usual", 0)):
        made.handle(sweep(name, strategy="whole", priority=priority), 2.0)
    assert [it.state for it in made.sweeps()] == [SweepState.RUNNING] + [SweepState.PLANNED] * 3
    order: list[str] = []
    for name in ("first", "high", "usual", "low"):
        now = 4.0 * (len(order) + 1)
        made.handle(SweepAbortRequested(name, "next"), now)
        made.handle(Ticked(), now + ABORT_GRACE_S)
        order += [it.id for it in made.sweeps() if it.state is SweepState.RUNNING]
    assert order == ["high", "usual", "low"]


def pair(first: str, second: str, verdict: Verdict) -> GroupRecord:
    """A group of an earlier round."""
    places = tuple(MemberRecord(node=node, verdict=verdict) for node in (first, second))
    ended: dict[str, Any] = {"state": GroupState.ENDED, "ending": Ending.FINISHED, "started_at": 1.0, "ended_at": 2.0}
    return GroupRecord(id=f"s-{first}{second}", members=(first, second), verdict=verdict, places=places, **ended)


def restarted(
    after_restart: AfterRestart, *earlier: GroupRecord, lost: tuple[str, ...] = ()
) -> tuple[Fleet, list[Command]]:
    """A fleet that another coordinator has left in the middle of a sweep, and what it does first."""
    old = fleet("a", "b", "c")
    old.handle(sweep("s", strategy="whole", nodes=("a", "b", "c")), 1.0)
    (record,) = old.sweeps()
    rounds = (*([RoundRecord(number=1, groups=earlier)] if earlier else []), *record.rounds)
    numbered = tuple(stage.model_copy(update={"number": number}) for number, stage in enumerate(rounds, 1))
    saved = Saved(
        nodes=tuple(_stored(name, online=name not in lost) for name in ("a", "b", "c")),
        runs=(run(1, Verdict.FAIL), run(2, Verdict.FAIL)),
        streams={("a", "s"): 2},
        sweeps=(record.model_copy(update={"rounds": numbered}),),
    )
    new = Fleet(name="test", epoch=8, after_restart=after_restart)
    return new, new.restore(saved, 100.0)


def test_a_restart_can_end_what_was_under_way_and_keeps_what_it_found() -> None:
    """Members are released, convictions stand, streams go on where they were, lost nodes stay lost."""
    with_c = [pair(node, "c", Verdict.FAIL) for node in ("a", "b")]
    new, commands = restarted(AfterRestart.ABORT, pair("a", "b", Verdict.PASS), *with_c, lost=("b",))
    assert [word for word in kinds(commands) if word.startswith("abort")] == ["abort a", "abort b", "abort c"]
    ended = new.sweep("s")
    assert isinstance(ended, SweepRecord)
    assert (ended.state, ended.verdict, ended.cleared_nodes) == (SweepState.ABORTED, Verdict.FAIL, ("a", "b"))
    groups = [command.record for command in commands if isinstance(command, SaveGroup)]
    assert [group.ending for group in groups] == [*[Ending.FINISHED] * 3, Ending.INTERRUPTED]
    assert {view.name: (view.health, view.lost) for view in views(new, 100.0)} == {
        "a": (Health.FAILED, False),
        "b": (Health.UNKNOWN, True),
        "c": (Health.FAILED, False),
    }
    assert kinds(new.handle(report(run(3), after=2), 101.0))[0] == "StoreRuns"
    (stored,) = (c.record for c in commands if isinstance(c, SaveNode) and c.record.name == "c")
    again = Fleet(name="test", epoch=9)
    again.restore(Saved(nodes=(stored,)), 200.0)
    (view,) = views(again, 200.0)
    assert (view.health, view.findings[0].code) == (Health.FAILED, "collective.failed")


def test_after_a_restart_a_sweep_goes_on_when_its_nodes_are_heard_of() -> None:
    """Its members were released; the next round waits for each of them, and does without those that are lost."""
    new, commands = restarted(AfterRestart.RESUME, lost=("b",))
    assert [word for word in kinds(commands) if word.startswith("abort")] == ["abort a", "abort b", "abort c"]
    (record,) = new.sweeps()
    assert (record.ended_at, len(record.rounds), set(record.absent)) == (None, 2, {"b"})
    assert new.handle(Ticked(), 101.0) == []
    assert "join a" not in kinds(new.handle(presence("a"), 102.0))
    sent = [command for command in new.handle(presence("c"), 103.0) if isinstance(command, SendCommand)]
    joins = {it.node: it.command.group for it in sent if isinstance(it.command, Join)}
    assert joins == {"a": "s-8.2", "c": "s-8.2"}


def test_a_sweep_whose_check_is_gone_ends_after_a_restart() -> None:
    """With the reason."""
    old = fleet("a", "b")
    old.handle(sweep("s", strategy="pairs"), 1.0)
    (node, other) = (_stored(name, online=True).model_copy(update={"checks": CHECKS[:1]}) for name in ("a", "b"))
    new = Fleet(name="test", epoch=8)
    new.restore(Saved(nodes=(node, other), sweeps=tuple(old.sweeps())), 100.0)
    ended = new.sweep("s")
    assert ended is not None
    assert ended.state is SweepState.ABORTED
    assert ended.reason == "the coordinator was restarted: node 'a' does not have check 'collective' any more"


def _stored(name: str, *, online: bool) -> NodeRecord:
    return NodeRecord(
        name=name, online=online, first_seen=0.0, last_seen=1.0, service=ServiceState.IN_SERVICE, checks=CHECKS
    )


def speeds(node: str, seq: int, value: float, **more: Any) -> Run:
    facts = {"backend": "cuda", "devices": [0], **more}
    return run(seq, node=node).model_copy(
        update={"id": f"{node}-{seq}", "metrics": {"tflops": [value]}, "facts": facts}
    )


def comparing(*nodes: str) -> Fleet:
    """A fleet whose nodes announce a check that is compared."""
    made = Fleet(name="test", epoch=7)
    gemm = check("gemm", Scope.NODE).model_copy(update={"compared": {"tflops": Worse.LOWER}})
    for node in nodes:
        made.handle(InventorySeen(InventoryReport(**head(node), inventory=Inventory(), checks=(gemm,))), 0.0)
    return made


NODES = [f"n{number}" for number in range(12)]


def measured(made: Fleet, value: float = 700.0, slow: float = 500.0) -> list[Command]:
    """The commands of three runs of each node, of which n7 is slow."""
    commands: list[Command] = []
    for seq in (1, 2, 3):
        for node in NODES:
            speed = slow if node == "n7" else value
            commands += made.handle(report(speeds(node, seq, speed), after=seq - 1), float(seq))
    return commands


def test_an_outlier_degrades_its_node_and_is_told() -> None:
    """Once enough others are there, with the figures in findings, reasons and story, until it is back in line."""
    made = comparing(*NODES)
    told = [command.entry for command in measured(made) if isinstance(command, Tell)]
    view = made.node("n7", 4.0)
    assert view is not None
    assert (view.health, [finding.code for finding in view.findings]) == (Health.DEGRADED, ["baseline.outlier"])
    assert "tflops 500 is 28.6% worse than the 700" in view.reasons[0]
    assert [(entry.node, entry.cause) for entry in told if entry.kind == "out_of_line"] == [("n7", "n8-3")]
    for seq in (4, 5):
        commands = made.handle(report(speeds("n7", seq, 700.0), after=seq - 1), float(seq))
    assert "tell no_longer" in kinds(commands)
    assert (made.node("n7", 6.0) or view).health is Health.HEALTHY


def test_a_restarted_fleet_compares_as_before() -> None:
    """From the last runs and the stored baselines, which are not stored again."""
    made = comparing(*NODES)
    commands = measured(made)
    records = tuple(node for node in (command.record for command in commands if isinstance(command, SaveNode)))
    runs = tuple(run for command in commands if isinstance(command, StoreRuns) for run in command.runs)
    baselines = tuple(command.record for command in commands if isinstance(command, SaveBaseline))
    again = Fleet(name="test", epoch=8)
    saved = Saved(nodes=records, runs=runs, baselines=baselines[-1:])
    assert kinds(again.restore(saved, 10.0)) == ["PublishReferences"]
    view = again.node("n7", 10.0)
    assert view is not None
    assert (view.health, view.findings[0].code) == (Health.DEGRADED, "baseline.outlier")
    assert again.baselines() == made.baselines()


def test_the_fleet_as_a_whole() -> None:
    """Counts by health and service state, who is lost, and what is wrong with many."""
    made = comparing(*NODES)
    measured(made)
    for seq in (4, 5, 6):
        for node in NODES:
            made.handle(report(speeds(node, seq, 600.0), after=seq - 1), float(seq))
    made.handle(presence("n3", online=False), 7.0)
    view = made.view(7.0)
    assert (view.nodes, view.health, view.service) == (12, {Health.HEALTHY: 12}, {ServiceState.IN_SERVICE: 12})
    assert view.lost == ("n3",)
    (finding,) = view.findings
    assert (finding.code, finding.baseline) == ("baseline.shift", made.baselines()[0].id)
    commands = made.handle(BaselineReset(finding.baseline), 8.0)
    assert kinds(commands) == ["EraseBaseline", "SaveBaseline"]
    assert made.view(8.0).findings == ()


def test_an_unknown_baseline_is_refused() -> None:
    """Nothing changes."""
    with pytest.raises(Refused, match="baseline"):
        fleet("a").handle(BaselineReset("nothing"), 1.0)


def test_devices_that_compute_otherwise_make_a_suspect() -> None:
    """One whose bits differ from those of its like is suspected, and never failed by that alone."""
    made = comparing(*NODES)
    for seq in (1, 2, 3):
        for node in NODES:
            bits = "bad" if node == "n7" else "good"
            one = speeds(node, seq, 700.0, fingerprints={"product": [bits]}, models=["H200"], software={"torch": "2"})
            made.handle(report(one, after=seq - 1), float(seq))
    assert {view.name for view in views(made, 4.0) if view.health is Health.SUSPECT} == {"n7"}
