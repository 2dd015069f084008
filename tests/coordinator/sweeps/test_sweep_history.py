"""What ended sweeps and background checks say before the next sweep begins."""

from typing import Any

from tests.coordinator.fleets import fleet, report, run, sweep
from tests.coordinator.sweeps.play import Play, plan

from muster.model import Verdict
from muster_coordinator.evidence.node import Node
from muster_coordinator.fleet import Fleet
from muster_coordinator.localize.evidence.prior import MOST_SWEEPS, PastSweep, SweepPrior
from muster_coordinator.localize.likelihood.track_records import MOST_AGE_S
from muster_coordinator.localize.strategies.strategy import Strategy
from muster_coordinator.model.events import FleetCommand, SaveGroup
from muster_coordinator.model.stored_fleet import StoredFleet
from muster_coordinator.model.sweep_records import FailedNode, Suspicion, SweepRecord, SweepRequest, SweepState
from muster_coordinator.sweeps.sweep_history import MOST_CHECKS_SWEPT, SweepHistory, doubted_nodes
from muster_coordinator.views.sweeps.explanation import explain

NAMES = ("a", "b", "c", "d", "e", "f")
NOW = 1e9
LEFT = Suspicion(node="a", bad=(("b",),), good=2)


def ended(id: str, at: float = NOW, **more: Any) -> SweepRecord:
    """A sweep over all nodes that has ended."""
    settled: dict[str, Any] = {
        "state": SweepState.FINISHED,
        "strategy": "adaptive",
        "check": "collective",
        "suspicions": (LEFT,),
    }
    return SweepRecord(id=id, nodes=NAMES, created_at=at - 60, ended_at=at, **settled | more)


def nodes(*names: str, first_seen: float = 0.0) -> list[Node]:
    return [Node(name, first_seen=first_seen, last_seen=NOW) for name in names]


def test_what_a_sweep_leaves_is_known_to_the_next_one_with_the_same_check() -> None:
    """The latest sweep comes first, with its passes, and what it has cleared and convicted."""
    history = SweepHistory()
    failed = FailedNode(node="c", confidence=0.9, reasons=())
    asked = SweepRequest(check="collective", passes=3)
    history.note(ended("s1", asked=asked, cleared_nodes=("a", "b"), failed_nodes=(failed,)))
    history.note(ended("s2", check="other"))
    history.note(ended("s3", asked=asked, state=SweepState.ABORTED))
    last, first = history.prior("collective", nodes(*NAMES), NOW).sweeps
    assert (first.id, first.passes, first.cleared, first.convicted) == ("s1", 3, {"a", "b"}, {"c"})
    assert (last.id, last.passes, last.suspicions) == ("s3", 1, {"a": LEFT})


def test_it_is_bounded() -> None:
    """In sweeps, checks and age; sweeps of single nodes are no sweeps of groups."""
    history = SweepHistory()
    for number in range(MOST_SWEEPS + 2):
        history.note(ended(f"s{number}"))
    history.note(ended("alone", strategy="single"))
    known = history.prior("collective", nodes(*NAMES), NOW).sweeps
    assert (len(known), known[0].id) == (MOST_SWEEPS, f"s{MOST_SWEEPS + 1}")
    assert history.prior("collective", nodes(*NAMES), NOW + MOST_AGE_S).sweeps == ()
    for number in range(MOST_CHECKS_SWEPT):
        history.note(ended("s", check=f"check{number}"))
    assert history.prior("collective", nodes(*NAMES), NOW).sweeps == ()


def test_a_new_machine_does_not_inherit_the_suspicion_of_its_name() -> None:
    """Nor are nodes suspected that take no part."""
    history = SweepHistory()
    history.note(ended("s1"))
    for members in (nodes("a", "b", first_seen=NOW + 1), nodes("b", "c")):
        (known,) = history.prior("collective", members, NOW + 2).sweeps
        assert known.suspicions == {}


def test_nodes_with_findings_are_doubted() -> None:
    """Unless so many have the same finding that it says nothing about one of them."""
    made = fleet(*(f"n{number}" for number in range(8)))
    for count in (1, 4, 5):
        for number in range(count):
            made.handle(report(run(1, Verdict.FAIL, f"n{number}")), NOW)
        expected = {f"n{number}" for number in range(count)} if count < 5 else set()
        assert doubted_nodes(made._registry.nodes.values()) == expected


def reasons(commands: list[FleetCommand]) -> list[str]:
    """Why the first groups were formed."""
    return [reason for it in commands if isinstance(it, SaveGroup) for reason in it.record.reasons]


def test_a_sweep_goes_on_from_a_suspicion_also_after_a_restart() -> None:
    """It says in the first round which node is suspected since when. Other strategies do not use it."""
    old = fleet(*NAMES)
    stored = tuple(node.record() for node in old._registry.nodes.values())
    again = Fleet(name="test", epoch=8)
    again.restore(StoredFleet(nodes=stored, swept=(ended("s1", cleared_nodes=NAMES),)), NOW + 10)
    for name in NAMES:
        again.handle(report(run(1, node=name)), NOW + 11)
    told = reasons(again.handle(sweep("s2"), NOW + 12))
    assert [reason for reason in told if reason.startswith("a is suspected since sweep s1")] != []
    assert "suspected" not in " ".join(reasons(fleet(*NAMES).handle(sweep("s2"), NOW)))


def test_a_sweep_tells_who_is_still_suspected() -> None:
    """In its notes, in the explanation of that node, and in its record for the next sweep, with today's good runs."""
    left = Suspicion(node="n0", bad=(("n1",), ("n2",)), good=1)
    cleared = frozenset(f"n{number}" for number in range(16))
    past = PastSweep(id="s1", ended_at=-60.0, passes=1, cleared=cleared, convicted=frozenset(), suspicions={"n0": left})
    record = Play(plan(Strategy.ADAPTIVE, 16, prior=SweepPrior((past,)))).to_end()
    told = "n0 is still suspected: suspected since sweep s1 of 1969-12-31; since then 2 of "
    assert [note for note in record.notes if note.startswith(told)] != []
    explanation = explain(record, "n0", {})
    assert any(note.startswith(told) for note in explanation.notes)
    assert explanation.rounds[0].groups[0].told[1].startswith("formed because: n0 is suspected since sweep s1")
    (again,) = record.suspicions
    assert (again.node, again.bad, again.good > 1) == ("n0", (), True)
