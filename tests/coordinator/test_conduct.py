"""Findings of a node whose agent sends too much, or bad messages."""

import pytest
from tests.coordinator.fleets import fleet, inventory, kinds, presence, report, run

from muster.model import Finding, Health, Severity, Verdict
from muster_coordinator.conduct import QUIET_S, SUMMARIES, Misconduct
from muster_coordinator.events import AgentMisbehaved, EraseStream, ReportSeen, SendAck, StoreRuns, Ticked
from muster_coordinator.fleet import Fleet
from muster_coordinator.health import MOST_STANDING
from muster_coordinator.report_intake import MOST_STREAMS


def healthy() -> Fleet:
    made = fleet("a", "b")
    for seq in (1, 2):
        made.handle(report(run(seq), after=seq - 1), float(seq))
    return made


def codes(made: Fleet, node: str = "a") -> list[str]:
    view = made.node(node, 5.0)
    assert view is not None
    return [finding.code for finding in view.findings]


@pytest.mark.parametrize("kind", Misconduct)
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


def test_reports_beyond_a_node_s_quota_are_not_stored():
    """Nor acknowledged, so the agent keeps them. Reports of other nodes are stored."""
    made = Fleet(name="test", epoch=7, bytes_a_day=100_000.0)
    for node in ("a", "b"):
        made.handle(inventory(node), 0.0)
    taken = 0
    for seq in range(1, 30):
        said = ReportSeen(report(run(seq), after=seq - 1).message, 20_000)
        taken += any(isinstance(command, StoreRuns) for command in made.handle(said, 1.0))
    assert 4 <= taken <= 6
    assert (made.counts.over_quota, codes(made)) == (29 - taken, [Misconduct.OVER_QUOTA])
    said = ReportSeen(report(run(29), after=28).message, 20_000)
    assert not any(isinstance(command, SendAck | StoreRuns) for command in made.handle(said, 2.0))
    other = ReportSeen(report(run(1, node="b")).message, 20_000)
    assert any(isinstance(command, SendAck) for command in made.handle(other, 3.0))


def test_the_findings_of_a_node_are_bounded():
    """A node may report many and large findings; the coordinator keeps few and small ones in memory."""
    made = fleet("a")
    large = Finding(code="gemm.slow", summary="s", severity=Severity.ERROR, evidence={"xid": 79, "text": "x" * 20_000})
    for seq in range(1, 8):
        found = [large.model_copy(update={"code": f"gemm.c{seq}-{number}"}) for number in range(200)]
        said = run(seq, Verdict.UNKNOWN if seq > 2 else Verdict.FAIL).model_copy(update={"findings": tuple(found)})
        made.handle(report(said, after=seq - 1), float(seq))
    view = made.node("a", 8.0)
    assert view is not None
    assert len(view.findings) == MOST_STANDING
    assert view.findings[0].code == "gemm.c7-0"
    assert set(view.findings[0].evidence) == {"xid", "note"}
    assert len(view.model_dump_json()) < 1 << 20
