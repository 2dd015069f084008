"""The findings that stand against a node, how often each was found, and the second opinions about them."""

from collections.abc import Callable
from typing import Any

import pytest

from muster.model import ServiceState, Severity, Verdict, format_instant
from muster.quarantine_settings import BudgetSettings
from muster.transition import Mark
from muster_coordinator.model.findings import Proof
from muster_coordinator.model.policy_row import MOST_REPEATS, Row
from muster_coordinator.model.quarantine import UpcomingRequirement
from muster_coordinator.model.quarantine_events import EvidenceChanged, Note, TestEnded
from muster_coordinator.quarantine.policy import MOST_TIMES, times_after

Of = Callable[..., list[Any]]

THRICE = Row(name="thrice", codes=("gemm.slow",), proof=Proof.ONCE, repeats=3, within_s=100, reason="again and again")


def test_a_finding_is_seen_once_for_each_run(quarantine: Any) -> None:
    """However often it is told, in whatever order, and beside another of the same kind from a sweep."""
    told = quarantine()
    own = told.charge("gemm.slow", seen=10.0)
    swept = told.charge("gemm.slow", Proof.LOCALISED, seen=5.0)
    seen = times_after(times_after((), (own, swept)), (swept, own))
    assert [sighting.times for sighting in seen] == [(5.0, 10.0)]


def test_what_was_seen_stays_seen(quarantine: Any) -> None:
    """Also when it is not charged any more; each device by itself, and only the latest times."""
    told = quarantine()
    seen = times_after((), (told.charge("gemm.slow", seen=1.0), told.charge("gemm.slow", seen=2.0, device=1)))
    seen = times_after(seen, ())
    for at in range(3, 3 + MOST_REPEATS):
        seen = times_after(seen, (told.charge("gemm.slow", seen=float(at)),))
    assert {sighting.device: sighting.times for sighting in seen} == {
        0: tuple(float(at) for at in range(3, 3 + MOST_REPEATS)),
        1: (2.0,),
    }


def test_what_was_seen_is_bounded(quarantine: Any) -> None:
    """A node that finds ever new things loses what was seen longest ago."""
    told = quarantine()
    seen: tuple[Any, ...] = ()
    for at in range(MOST_TIMES + 100):
        seen = times_after(seen, (told.charge(f"gemm.c{at}", seen=float(at)), told.charge("gemm.slow", seen=float(at))))
    assert len(seen) == MOST_TIMES
    assert {"gemm.slow", "gemm.c200"} <= {sighting.code for sighting in seen}
    assert min(sighting.times[-1] for sighting in seen) == 101.0


def test_what_was_found_within_this_millisecond_counts_at_once(quarantine: Any) -> None:
    """Times are stored in milliseconds: a finding must not begin after the moment at which it is judged."""
    told = quarantine(3)
    told.now += 0.0004
    told.accuse("a", "nvml.gone")
    assert told.state("a") is ServiceState.CORDONED


def test_each_number_of_a_code_is_seen_by_itself(quarantine: Any) -> None:
    """As two XIDs of one GPU are two findings."""
    told = quarantine()
    xids = [told.charge("nvml.xid", seen=float(at), evidence={"xid": xid}) for at, xid in enumerate((31, 62, 31))]
    assert [(it.number, it.times) for it in times_after((), xids)] == [("31", (0.0, 2.0)), ("62", (1.0,))]


def test_the_third_time_takes_it_out(quarantine: Any) -> None:
    """Where the policy wants so many runs within so long, passes between them or not, restarts or not."""
    told = quarantine(3, rows=(THRICE,))
    for _ in range(2):
        told.accuse("a", "gemm.slow")
        told.restart()
        told.wait(10)
        told.absolve("a")
    assert told.state("a") is ServiceState.IN_SERVICE
    told.accuse("a", "gemm.slow")
    assert told.state("a") is ServiceState.CORDONED


def test_what_comes_of_time_alone(quarantine: Any) -> None:
    """A demand that begins or lapses is noticed when it does, and nobody has to tell anything."""
    late = Row(name="late", codes=("gemm.slow",), after_s=300, fresh_s=1000, reason="it lasts")
    told = quarantine(3, rows=(late,))
    told.accuse("a", "gemm.slow")
    told.wait(299)
    assert told.state("a") is ServiceState.IN_SERVICE
    told.wait(1)
    assert told.state("a") is ServiceState.CORDONED


def test_what_waits_for_time_alone_is_told_once(quarantine: Any) -> None:
    """From when on it will be asked for, as long as nothing is; not any more when it is over or asked for."""
    late = Row(name="late", codes=("gemm.slow",), after_s=300, reason="it lasts")
    told = quarantine(3, rows=(late,))
    begun, text = (
        told.now,
        f"gemm.slow requires draining from {format_instant(told.now + 300)} on, unless",
    )
    for _ in range(2):
        told.tell(EvidenceChanged(node="a", findings=(told.charge("gemm.slow", since=begun),), is_fit=False))
        told.wait(100)
    assert [note.text for note in told.said if isinstance(note, Note) and note.about == "policy"] == [
        f"{text} it clears before (policy row late)"
    ]
    assert told.case("a").upcoming == UpcomingRequirement(row="late", code="gemm.slow", at=begun + 300)
    told.wait(100)
    assert (told.state("a"), told.case("a").upcoming) == (ServiceState.CORDONED, None)
    told.accuse("b", "gemm.slow")
    told.absolve("b")
    assert told.case("b").upcoming is None


@pytest.mark.parametrize("said", [{"severity": Severity.UNKNOWN}, {"severity": Severity.WARNING}])
def test_no_error_is_no_reason(quarantine: Any, said: dict[str, Any]) -> None:
    """What could not be found out, or is only a warning."""
    told = quarantine(3)
    told.tell(EvidenceChanged(node="a", findings=(told.charge("gemm.slow", **said),), is_fit=False))
    assert told.case("a").requirement is None


def test_that_it_is_lost_is_no_reason_unless_the_policy_says_so(quarantine: Any) -> None:
    """Silence alone keeps nobody out, as long as no row is about it."""
    told = quarantine(3, rows=(THRICE,))
    told.lose("a")
    told.wait(86_400)
    assert told.state("a") is ServiceState.IN_SERVICE


def test_silence_is_counted_from_its_beginning(quarantine: Any) -> None:
    """Also over a restart, after which it is told once more."""
    told = quarantine(3)
    told.lose("a")
    told.wait(400)
    told.restart()
    told.lose("a")
    told.wait(200)
    assert told.state("a") is ServiceState.CORDONED


def test_a_row_about_silence_that_cannot_be_proven_asks_nobody(quarantine: Any, of: Of) -> None:
    """Nobody can find again that a node is silent, least of all itself."""
    told = quarantine(3, rows=(Row(name="lost", codes=("node.lost",), reason="it is silent"),))
    told.lose("a")
    said = told.hear("a")
    assert of("tests", said) == []
    assert told.state("a") is ServiceState.IN_SERVICE


def test_a_released_finding_counts_no_more(quarantine: Any) -> None:
    """Until it is found again."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    findings = told.case("a").findings
    told.wait(10)
    told.release("a", untested=True)
    told.tell(EvidenceChanged(node="a", findings=findings, is_fit=False))
    assert told.state("a") is ServiceState.IN_SERVICE
    told.wait(10)
    told.accuse("a", "nvml.gone")
    assert told.state("a") is ServiceState.CORDONED


@pytest.mark.parametrize(
    ("row", "proofs"),
    [
        (Row(name="once", codes=("ecc.*",), proof=Proof.ONCE, reason="it is fatal"), (Proof.TWICE,)),
        (Row(name="twice", codes=("ecc.*",), reason="it is found twice"), (Proof.TWICE, Proof.TWICE)),
        (Row(name="swept", codes=("ecc.*",), reason="it is found twice"), (Proof.LOCALISED,)),
        (Row(name="often", codes=("ecc.*",), repeats=2, within_s=1000, reason="it is often"), (Proof.TWICE,) * 2),
        (Row(name="late", codes=("ecc.*",), after_s=25, reason="it lasts"), (Proof.TWICE,) * 3),
    ],
    ids=lambda it: it.name if isinstance(it, Row) else "",
)
def test_what_is_found_again_counts_from_the_start(quarantine: Any, row: Row, proofs: tuple[Proof, ...]) -> None:
    """As if it had never been found before the release, though it stands since long before."""
    told = quarantine(3, rows=(row,))
    begun = told.now

    def find(proof: Proof) -> None:
        told.wait(10)
        told.tell(EvidenceChanged(node="a", findings=(told.charge("ecc.high", proof, since=begun),), is_fit=False))

    for _ in range(MOST_REPEATS + 1):
        find(Proof.TWICE)
    assert told.state("a") is ServiceState.CORDONED
    told.release("a", untested=True)
    for proof in proofs:
        assert told.state("a") is ServiceState.IN_SERVICE
        find(proof)
    assert told.state("a") is ServiceState.CORDONED


@pytest.mark.parametrize("silent_s", [1, 601])
def test_a_released_silence_counts_no_more(quarantine: Any, silent_s: float) -> None:
    """However long it lasts; the next one does."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    told.lose("a")
    told.wait(silent_s)
    told.release("a", untested=True)
    told.wait(4000)
    told.survey("a", Mark.NONE)
    assert (told.state("a"), told.case("a").requirement) == (ServiceState.IN_SERVICE, None)
    told.hear("a")
    told.absolve("a")
    told.lose("a")
    told.wait(601)
    assert told.state("a") is ServiceState.CORDONED


# Second opinions


@pytest.fixture
def doubted(quarantine: Any) -> Any:
    """Three nodes; something was found once on the first, and a second opinion is asked for."""
    told = quarantine(3)
    told.accuse("a", "gemm.slow", proof=Proof.ONCE)
    return told


def test_a_second_opinion_is_asked_for_at_once(doubted: Any, of: Of) -> None:
    """Once, however often the same evidence is told."""
    assert of("tests", doubted.said) == ["gemm"]
    findings = doubted.case("a").findings
    for _ in range(3):
        doubted.wait(30)
        doubted.tell(EvidenceChanged(node="a", findings=findings, is_fit=False))
    assert of("tests", doubted.said) == ["gemm"]
    doubted.accuse("a", "gemm.slow")
    assert doubted.state("a") is ServiceState.CORDONED


def test_one_that_never_comes_is_asked_for_again(doubted: Any, of: Of) -> None:
    """When its run would have ended, and then ever more rarely: one that is never idle is asked each half an hour."""
    begun = doubted.now
    asked_at = [(doubted.now - begun) / 60 for _ in range(24 * 60) if of("tests", doubted.wait(60))]
    assert asked_at[:7] == [2, 6, 14, 30, 60, 90, 120]
    assert len(asked_at) == 51


def test_what_a_second_opinion_says_is_told(doubted: Any, of: Of) -> None:
    """When it has not found it again: what it has found is told as evidence. Only what was asked for counts."""
    asked = doubted.case("a").second_opinions["gemm"].test
    (note,) = of("notes", doubted.tell(TestEnded(node="a", test=asked, verdict=Verdict.PASS)))
    assert note == "gemm did not confirm it: PASS"
    assert of("notes", doubted.tell(TestEnded(node="a", test=asked, verdict=Verdict.FAIL))) == []
    assert doubted.tell(TestEnded(node="a", test="another", verdict=Verdict.PASS)) == []


def test_a_sweep_is_a_second_opinion_that_is_waited_for(quarantine: Any, of: Of) -> None:
    """One that could not tell is begun once more half an hour after its end, and after a restart at once."""
    row = Row(name="convicted", codes=("collective.slow",), proof=Proof.LOCALISED, fresh_s=100, reason="it is slow")
    told = quarantine(3, rows=(row,), budget=BudgetSettings(share="1%"))
    told.accuse("b", "collective.slow", proof=Proof.LOCALISED)
    told.accuse("a", "collective.slow", proof=Proof.LOCALISED)
    assert of("tests", told.wait(100)) == ["collective"]
    assert of("tests", told.wait(86_400)) == []
    told.tell(TestEnded(node="a", test=told.case("a").second_opinions["collective"].test, verdict=Verdict.UNKNOWN))
    assert of("tests", told.wait(1799)) == []
    assert of("tests", told.wait(1)) == ["collective"]
    assert of("tests", told.restart()) == []
    assert of("tests", told.wait(0)) == ["collective"]


def test_a_node_cannot_keep_others_busy_with_ever_new_findings(quarantine: Any, of: Of) -> None:
    """Of second opinions that are sweeps, one is asked for at a time, and the next about a check half an hour later."""
    told = quarantine(3, rows=(Row(name="all", codes=("*",), reason="all of it"),))
    asked = [told.accuse("a", f"collective.{number}", "ddp.slow", proof=Proof.ONCE) for number in range(20)]
    assert [of("tests", said) for said in asked] == [["collective"], *[[]] * 19]
    ended = TestEnded(node="a", test=told.case("a").second_opinions["collective"].test, verdict=Verdict.PASS)
    assert of("tests", told.tell(ended)) == ["ddp"]
    told.tell(TestEnded(node="a", test=told.case("a").second_opinions["ddp"].test, verdict=Verdict.UNKNOWN))
    assert of("tests", told.accuse("a", "collective.more", proof=Proof.ONCE)) == []
    assert of("tests", told.wait(1799)) == []
    assert of("tests", told.wait(1)) == ["collective"]


def test_each_new_run_is_asked_about_again(doubted: Any, of: Of) -> None:
    """Also before the old question would be asked again."""
    doubted.wait(60)
    assert of("tests", doubted.accuse("a", "gemm.slow", proof=Proof.ONCE)) == ["gemm"]


def test_each_check_is_asked(quarantine: Any, of: Of) -> None:
    """Of all that have found what is not proven."""
    told = quarantine(3, rows=(Row(name="all", codes=("*",), reason="all of it"),))
    assert of("tests", told.accuse("a", "gemm.slow", "nvml.gone", proof=Proof.ONCE)) == ["gemm", "nvml"]


def test_a_node_that_is_away_is_asked_when_it_is_back(quarantine: Any, of: Of) -> None:
    """It could not answer before."""
    told = quarantine(3)
    told.lose("a")
    assert of("tests", told.accuse("a", "gemm.slow", proof=Proof.ONCE)) == []
    assert of("tests", told.hear("a")) == ["gemm"]


def test_a_node_that_is_held_by_somebody_is_not_tested(quarantine: Any, of: Of) -> None:
    """Hands off means no tests either; they come when it is ours again."""
    told = quarantine(3)
    told.hold("a")
    assert of("tests", told.accuse("a", "gemm.slow", proof=Proof.ONCE)) == []
    assert of("tests", told.release("a")) == ["gemm"]


def test_observe_mode_asks_for_no_second_opinion(quarantine: Any, of: Of) -> None:
    """Tests keep nodes from work."""
    told = quarantine(3, mode="observe")
    assert of("tests", told.accuse("a", "gemm.slow", proof=Proof.ONCE)) == []


def test_a_held_node_whose_evidence_grows_old_is_asked_again(quarantine: Any, of: Of) -> None:
    """It neither goes for what may be over nor is it forgotten."""
    told = quarantine(2)
    told.accuse("b", "nvml.gone")
    told.accuse("a", "gemm.slow")
    assert told.state("a") is ServiceState.HELD
    assert of("tests", told.wait(1800)) == ["gemm"]
    told.let_in("b")
    told.wait(1)
    assert told.state("a") is ServiceState.HELD
    told.accuse("a", "gemm.slow")
    assert told.state("a") is ServiceState.CORDONED


def test_a_node_that_is_out_is_not_asked(quarantine: Any, of: Of) -> None:
    """What it must pass, it is tested with when it may come back."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    assert of("tests", told.accuse("a", "gemm.slow", proof=Proof.ONCE)) == []


@pytest.mark.parametrize("why", ["scale-down", "reboot"])
def test_what_leaves_as_planned_is_no_failure(quarantine: Any, why: str) -> None:
    """Whatever it shows meanwhile; when it stays after all, the evidence of now counts."""
    told = quarantine(3)
    told.survey("a", Mark.NONE, leaving=why)
    told.accuse("a", "nvml.gone")
    told.lose("a")
    told.wait(3000)
    assert (told.state("a"), told.case("a").requirement) == (ServiceState.IN_SERVICE, None)
    told.hear("a")
    told.survey("a", Mark.NONE)
    assert told.state("a") is ServiceState.CORDONED
