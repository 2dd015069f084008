"""Findings of a node whose agent sends too much, or bad messages."""

from tests.cases import cases
from tests.coordinator.fleets import check, fleet, head, inventory, kinds, presence, report, run

from muster.check import Scope, Worse
from muster.model import MOST_DEVICES, Device, Finding, Health, Inventory, Run, Severity, Topology, Verdict
from muster.wire.messages import InventoryReport, PluginInfo
from muster_coordinator.evidence.deduplication import MOST_STREAMS
from muster_coordinator.evidence.health import MOST_CHECKS, MOST_STANDING, MOST_STANDING_BYTES
from muster_coordinator.evidence.misconduct import QUIET_S, SUMMARIES
from muster_coordinator.evidence.quotas import DAY_S
from muster_coordinator.fleet import Fleet
from muster_coordinator.model.events import (
    AgentMisbehaved,
    EraseStream,
    FleetCommand,
    InventorySeen,
    ReportSeen,
    SaveEvidence,
    SendAck,
    StoreRuns,
    Ticked,
)
from muster_coordinator.model.nodes import Misconduct
from muster_coordinator.model.stored_fleet import StoredFleet
from muster_coordinator.normal.baselines import MAX_READINGS


def healthy() -> Fleet:
    made = fleet("a", "b")
    for seq in (1, 2):
        made.handle(report(run(seq), after=seq - 1), float(seq))
    return made


def codes(made: Fleet, node: str = "a") -> list[str]:
    view = made.node(node, 5.0)
    assert view is not None
    return [finding.code for finding in view.findings]


@cases("kind", Misconduct)
def test_a_finding_stands_until_the_agent_has_behaved(kind):
    """The node becomes DEGRADED and stays in service; other nodes do not change; ten quiet minutes end the finding."""
    made = healthy()
    first = made.handle(AgentMisbehaved("a", kind, "reports"), 5.0)
    assert kinds(first)[:2] == ["tell misconduct", "tell health"]
    assert made.handle(AgentMisbehaved("a", kind), 100.0) == []
    view = made.node("a", 100.0)
    assert view is not None
    assert (view.health, view.reasons) == (Health.DEGRADED, (f"{SUMMARIES[kind]}: reports",))
    assert (codes(made), codes(made, "b")) == ([kind], [])
    for now in range(110, int(100 + QUIET_S), 20):
        made.handle(presence("a"), float(now))
        made.handle(presence("b"), float(now))
        assert kinds(made.handle(Ticked(), float(now))) == []
    over = made.handle(Ticked(), 100.0 + QUIET_S + 1)
    assert "tell no_longer" in kinds(over)
    assert codes(made) == []


def test_conduct_is_a_reason_before_anything_is_measured():
    """A node that is DEGRADED says why, also when it has not measured anything yet."""
    made = fleet("a")
    made.handle(AgentMisbehaved("a", Misconduct.FLOODING, "reports"), 5.0)
    view = made.node("a", 6.0)
    assert view is not None
    summary = f"{SUMMARIES[Misconduct.FLOODING]}: reports"
    assert (view.health, view.reasons) == (Health.DEGRADED, (summary,))


def test_an_unknown_node_is_not_registered():
    """A client that has only sent garbage is no node."""
    made = fleet("a")
    assert made.handle(AgentMisbehaved("ghost", Misconduct.REFUSED, "malformed"), 5.0) == []
    assert made.names == ["a"]


def test_runs_of_checks_that_were_not_announced_do_not_count():
    """They are stored, and the node gets one finding for all of them; nothing else is remembered of them."""
    made = healthy()
    made_up = [run(seq, Verdict.FAIL).model_copy(update={"check": f"c{seq}", "id": f"x{seq}"}) for seq in range(3, 203)]
    commands = made.handle(report(*made_up, after=2), 5.0)
    assert [len(command.runs) for command in commands if isinstance(command, StoreRuns)] == [200]
    assert codes(made) == [Misconduct.NOT_ANNOUNCED]
    view = made.node("a", 5.0)
    assert view is not None
    assert (view.health, set(view.checks)) == (Health.DEGRADED, {"gemm"})
    assert made.counts.not_announced == 200


def test_a_node_whose_inventory_has_not_arrived_gets_no_finding():
    """Its runs are no evidence yet, but nobody knows which checks it has."""
    made = Fleet(name="test", epoch=7)
    made.handle(report(run(1)), 1.0)
    assert (codes(made), made.counts.not_announced) == ([], 1)


def test_runs_are_stored_of_so_many_checks_at_most():
    """The last runs of each are kept as long as the node, and read at every start; what is more is acknowledged."""
    made = fleet("a", "b")
    commands: list[FleetCommand] = []
    for first in range(1, 1001, 100):
        made_up = [run(seq).model_copy(update={"check": f"c{seq}"}) for seq in range(first, first + 100)]
        commands += made.handle(report(*made_up, after=first - 1), 100.0 * first)
    assert stored(commands) == MOST_CHECKS
    assert [it.ack.stored_through for it in commands if isinstance(it, SendAck)][-1] == 1000
    again = Fleet(name="test", epoch=8)
    evidence = tuple(command.record for command in commands if isinstance(command, SaveEvidence))
    again.restore(StoredFleet(evidence=evidence, streams={("a", "s"): 1000}), 200_000.0)
    more = [run(1001).model_copy(update={"check": "c1001"}), run(1002).model_copy(update={"check": "c7"})]
    assert stored(again.handle(report(*more, after=1000), 200_001.0)) == 1


def test_runs_about_plugins_need_no_announcement():
    """Every agent reports how its plugins were loaded."""
    made = healthy()
    made.handle(report(run(3).model_copy(update={"check": "plugins"}), after=2), 5.0)
    assert codes(made) == []


def test_the_number_of_remembered_streams_is_bounded():
    """A node that begins many streams loses its oldest ones, also in the store; those of other nodes stay."""
    made = fleet("a", "b")
    made.handle(report(run(1, node="b")), 1.0)
    erased = []
    for number in range(MOST_STREAMS + 3):
        said = report(run(1))
        message = said.message.model_copy(update={"stream": f"s{number}"})
        erased += [command for command in made.handle(ReportSeen(message), 2.0) if isinstance(command, EraseStream)]
    assert erased == [EraseStream("a", f"s{number}") for number in range(3)]
    (again,) = [command for command in made.handle(report(run(1, node="b")), 3.0) if isinstance(command, SendAck)]
    assert (again.ack.stored_through, made.counts.duplicates) == (1, 1)


def large(seq: int, size: int = 20_000, node: str = "a") -> Run:
    """A healthy run that takes so many bytes."""
    return run(seq, node=node).model_copy(update={"facts": {"text": "x" * size}})


def stored(commands: list[FleetCommand]) -> int:
    return sum(len(it.runs) for it in commands if isinstance(it, StoreRuns))


def limited(*nodes: str, bytes_a_day: float = 100_000.0) -> Fleet:
    made = Fleet(name="test", epoch=7, bytes_a_day=bytes_a_day)
    for node in nodes:
        made.handle(inventory(node), 0.0)
    return made


def test_beyond_its_quota_a_nodes_reports_are_not_taken():
    """They are not acknowledged either, so an agent that means well keeps them; the others' are taken."""
    made = limited("a", "b")
    taken = sum(stored(made.handle(report(large(seq), after=seq - 1), 1.0)) for seq in range(1, 30))
    assert 4 <= taken <= 6
    assert (made.counts.over_quota, codes(made)) == (29 - taken, [Misconduct.OVER_QUOTA])
    assert not any(isinstance(it, SendAck | StoreRuns) for it in made.handle(report(large(29), after=28), 2.0))
    assert any(isinstance(it, SendAck) for it in made.handle(report(large(1, node="b")), 3.0))


def test_runs_that_were_stored_before_do_not_hide_a_large_one():
    """What counts is the new run, however many old and small ones come with it again."""
    made = limited("a")
    small = [run(seq) for seq in range(1, 101)]
    made.handle(report(*small), 1.0)
    taken = sum(stored(made.handle(report(*small, large(seq)), 1.0)) for seq in range(101, 130))
    assert taken <= 5


def test_a_report_is_taken_as_far_as_it_costs_what_others_do():
    """With much that stands against its node every change is dear; the rest waits for the next report."""
    made = fleet("a", "b")
    many = tuple(Finding(code=f"gemm.c{number}", summary="s", severity=Severity.WARNING) for number in range(500))
    made.handle(report(run(1, Verdict.WARN).model_copy(update={"findings": many})), 1.0)
    runs = [run(seq, Verdict.FAIL).model_copy(update={"findings": many}) for seq in range(2, 202)]
    commands = made.handle(report(*runs, after=1), 2.0)
    assert 1 <= stored(commands) <= 20
    (ack,) = [it.ack.stored_through for it in commands if isinstance(it, SendAck)]
    assert ack == 1 + stored(commands)
    later = made.handle(report(*runs, after=1), 3.0)
    assert [it.runs[0].seq for it in later if isinstance(it, StoreRuns)] == [ack + 1]


def test_what_a_node_is_made_of_waits_when_it_may_have_no_more_stored():
    """It is taken when there is room again, and only as it was said last; the others' is taken at once."""
    made = limited("a", "b")
    for seq in range(1, 8):
        made.handle(report(large(seq), after=seq - 1), 1.0)
    failed = PluginInfo(name="nvml", distribution=None, version=None, status="failed", error="x" * 1000)
    for number in range(50):
        said = made.handle(inventory("a", rack=f"r{number}", plugins=(failed,)), 2.0)
        assert kinds(said) == []
    assert made.places(["a"]) == {"a": Topology()}
    assert "tell plugin_failed" in kinds(made.handle(inventory("b", rack="r1", plugins=(failed,)), 2.0))
    assert "tell plugin_failed" in kinds(made.handle(presence("a"), DAY_S))
    assert made.places(["a"]) == {"a": Topology(rack="r49")}


def test_ever_new_inventories_count_for_the_quota():
    """What they change is stored, as what reports change is."""
    made = limited("a")
    told = [kinds(made.handle(inventory("a", rack="x" * 100 + str(number)), 1.0)) for number in range(100)]
    assert 5 <= sum(bool(said) for said in told) <= 30


def test_who_comes_and_goes_all_the_time_is_taken_at_its_word_up_to_its_quota():
    """Beyond that, only its silence tells that it is gone."""
    made = limited("a")
    gone = [kinds(made.handle(presence("a", online=seq % 2 == 0), 1.0)) for seq in range(1, 200)]
    assert 5 <= sum("tell lost" in said for said in gone) <= 30
    assert made.handle(presence("a", online=False), 2.0) == []
    assert "tell lost" in kinds(made.handle(Ticked(), 40.0))


def test_a_node_that_says_much_about_itself_is_changed_rarely():
    """All of it is announced with each change, to everybody who listens."""
    made = fleet("a", "b")
    failed = tuple(
        PluginInfo(name=f"p{number}", distribution=None, version=None, status="failed", error="x" * 4000)
        for number in range(200)
    )
    made.handle(inventory("a", plugins=failed), 1.0)
    changed = [made.handle(presence("a", online=seq % 2 == 0), 2.0) for seq in range(1, 200)]
    assert 10 <= sum("tell lost" in kinds(said) for said in changed) <= 60


def test_a_clock_that_jumps_counts_for_the_quota():
    """Each time its story says so."""
    made = limited("a")
    made.handle(report(run(1)), 1000.0)
    told = 0
    for number in range(400):
        said = report(run(1)).message.model_copy(update={"sent_at": 9_000.0 if number % 4 == 0 else 1000.0})
        told += "tell clock" in kinds(made.handle(ReportSeen(said, 200), 1000.0))
    assert 5 <= told <= 60


def test_what_comparing_finds_is_bounded():
    """However many devices a node announces, and however many metrics it has compared that only it measures."""
    made = fleet("b")
    metrics = {f"m{number}": Worse.LOWER for number in range(100)}
    own = check("own", Scope.NODE).model_copy(update={"compared": metrics})
    devices = tuple(Device(index=index, uuid=f"u{index}", model="m") for index in range(MOST_DEVICES))
    said = InventoryReport(**head("a"), inventory=Inventory(devices=devices), checks=(own,))
    made.handle(InventorySeen(said), 0.0)
    for seq in range(1, 13):
        value = 9.0 if seq < 10 else 1.0
        measured = dict.fromkeys(metrics, [value] * MOST_DEVICES)
        made.handle(
            report(run(seq).model_copy(update={"check": "own", "metrics": measured}), after=seq - 1), 100.0 * seq
        )
    assert sum(view.devices for view in made.baselines()) == MAX_READINGS // MOST_DEVICES * MOST_DEVICES
    view = made.node("a", 1200.0)
    assert view is not None
    assert {finding.code for finding in view.findings} == {"baseline.drift"}
    assert len(view.findings) <= MOST_STANDING
    assert len(view.model_dump_json()) < 1 << 20


def test_the_findings_of_a_node_are_bounded():
    """A node may report many and large findings; the coordinator keeps few and small ones in memory."""
    made = fleet("a")
    large = Finding(code="gemm.slow", summary="s", severity=Severity.ERROR, evidence={"xid": 79, "text": "x" * 20_000})
    for seq in range(1, 8):
        found = [large.model_copy(update={"code": f"gemm.c{seq}-{number}"}) for number in range(200)]
        said = run(seq, Verdict.UNKNOWN if seq > 2 else Verdict.FAIL).model_copy(update={"findings": tuple(found)})
        made.handle(report(said, after=seq - 1), 1000.0 * seq)
    view = made.node("a", 8000.0)
    assert view is not None
    assert len(view.findings) == MOST_STANDING
    assert view.findings[0].code == "gemm.c7-0"
    assert set(view.findings[0].evidence) == {"xid", "note"}
    assert len(view.model_dump_json()) < 1 << 20


def test_what_stands_against_a_node_is_bounded_in_bytes():
    """As all of it is told and stored with every change."""
    made = fleet("a")
    found = [
        Finding(code=f"gemm.c{number}", summary="s" * 4000, severity=Severity.ERROR, evidence={"text": "x" * 4000})
        for number in range(100)
    ]
    made.handle(report(run(1, Verdict.FAIL).model_copy(update={"findings": tuple(found)})), 1.0)
    view = made.node("a", 2.0)
    assert view is not None
    assert 10 <= len(view.findings) < 40
    assert len(view.model_dump_json()) < MOST_STANDING_BYTES + 10_000
