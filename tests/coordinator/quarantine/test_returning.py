"""How a node comes back: when it is tested, with what, how often, and when only a person lets it."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.cases import cases

from muster.model import ServiceState, Verdict
from muster.quarantine_settings import AcceptanceTest, ReturnSettings
from muster.transition import Mark
from muster_coordinator.model.quarantine_events import Note, TestEnded
from muster_coordinator.quarantine.desired import DAY_S, needs_person, wait_s

Of = Callable[..., list[Any]]

CORDONED, PROBATION, IN_SERVICE = ServiceState.CORDONED, ServiceState.PROBATION, ServiceState.IN_SERVICE


@pytest.fixture
def tried(quarantine: Any) -> Callable[..., Any]:
    """Three nodes, of which the first was taken out and is being tested under these settings."""

    def build(*tests: str, **returning: Any) -> Any:
        wanted = tuple(AcceptanceTest(check=check, params={"size": 1}) for check in tests)
        told = quarantine(3, returning=ReturnSettings(**{"wait_s": 0, **returning}))
        told.accuse("a", "gemm.slow")
        told.restart(tests=wanted)
        told.release("a")
        return told

    return build


def passes(told: Any, times: int) -> None:
    for _ in range(times):
        told.end_test("a", Verdict.PASS)


def test_it_passes_everything_so_many_times_in_a_row(tried: Any, of: Of) -> None:
    """What is wanted, what it had failed and what it runs by itself, in two rounds with a pause between them."""
    told = tried("memory", passes=2, pause_s=60)
    told.absolve("a")
    passes(told, 3)
    assert told.state("a") is PROBATION
    assert of("tests", told.wait(59)) == []
    told.wait(1)
    passes(told, 3)
    assert told.state("a") is IN_SERVICE
    assert of("tests", told.said) == ["memory", "gemm", "nvml"] * 2


@pytest.mark.parametrize(("rounds", "said"), [(1, "once"), (2, "2 times in a row")])
def test_it_says_how_often_it_has_passed(tried: Any, rounds: int, said: str) -> None:
    """As a person would."""
    told = tried(passes=rounds, pause_s=0)
    told.absolve("a")
    passes(told, 2 * rounds)
    assert told.transition("a").reason == f"passed its tests {said}"


def test_a_wanted_test_has_its_parameters(tried: Any) -> None:
    """As the settings give them."""
    told = tried("memory")
    (test,) = [command for command in told.said if command.kind == "start_test"]
    assert (test.check, test.params) == ("memory", {"size": 1})


def test_a_sweep_with_healthy_partners_comes_last(tried: Any) -> None:
    """Where the settings want one."""
    told = tried(partners=3, sweep="collective")
    passes(told, 2)
    last = [command for command in told.said if command.kind == "start_test"][-1]
    assert (last.check, last.partners) == ("collective", 3)


def test_what_fails_stays_out(tried: Any) -> None:
    """At the first failure, and it counts as if it had been taken out once more."""
    told = tried("memory")
    told.end_test("a", Verdict.FAIL)
    assert told.state("a") is CORDONED
    assert told.transition("a").reason == "failed memory"
    assert len(told.case("a").cordoned_at) == 2


def test_evidence_keeps_it_out_although_it_passes(tried: Any, of: Of) -> None:
    """It is tested ever more rarely, until nothing stands against it any more."""
    told = tried("memory", passes=1, pause_s=60)
    passes(told, 3)
    assert (told.state("a"), told.case("a").probation.trouble) == (PROBATION, "")
    for pause_s in (60, 60, 120, 240):
        assert of("tests", told.wait(pause_s - 1)) == []
        told.wait(1)
        passes(told, 3)
    assert told.case("a").probation.trouble == "all tests passed, but not all faults have cleared"
    told.absolve("a")
    assert told.state("a") is IN_SERVICE


@pytest.mark.parametrize("verdict", [Verdict.UNKNOWN, Verdict.SKIPPED])
def test_what_a_wanted_test_does_not_say_counts_for_nothing(tried: Any, of: Of, verdict: Verdict) -> None:
    """The round begins again, after a pause that grows: a node that works for hours still is not tested each minute."""
    told = tried("memory", passes=1, pause_s=60)
    told.absolve("a")
    for pause_s in (60, 120, 240, 480, 960, 1920, 3600, 3600):
        told.end_test("a", verdict)
        assert told.case("a").probation.trouble == f"memory reported {verdict}"
        assert of("tests", told.wait(pause_s - 1)) == []
        assert of("tests", told.wait(1)) == ["memory"]
    passes(told, 3)
    assert told.state("a") is IN_SERVICE


def test_what_it_only_runs_by_itself_may_be_skipped(quarantine: Any) -> None:
    """A check that this node cannot run keeps it from nothing."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    told.release("a")
    told.absolve("a")
    told.end_test("a", Verdict.PASS)
    told.end_test("a", Verdict.SKIPPED)
    assert told.state("a") is IN_SERVICE


def test_a_warning_is_a_pass(quarantine: Any) -> None:
    """What warns works."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    told.release("a")
    told.absolve("a")
    told.end_test("a", Verdict.WARN)
    told.end_test("a", Verdict.WARN)
    assert told.state("a") is IN_SERVICE


def test_a_test_that_says_nothing_is_asked_for_again(tried: Any, of: Of) -> None:
    """When an ordered run would have ended. The node may have been looked at for another reason in between."""
    told = tried("memory", pause_s=60)
    told.wait(100)
    told.survey("a", Mark.OURS)
    assert of("tests", told.wait(899)) == []
    told.wait(1)
    assert told.case("a").probation.trouble == "the last test did not report"
    assert of("tests", told.wait(60)) == ["memory"]


def test_a_sweep_is_waited_for_until_it_has_ended(tried: Any, of: Of) -> None:
    """However long it takes: it tells its end by itself, and another beside it would only delay both."""
    told = tried("collective", passes=1)
    told.absolve("a")
    for _ in range(24):
        assert of("tests", told.wait(3600)) == []
    assert of("tests", told.end_test("a", Verdict.PASS)) == ["gemm"]


@pytest.mark.parametrize("interrupts", ["it is lost", "the coordinator restarts"])
def test_an_interrupted_round_begins_again(tried: Any, of: Of, interrupts: str) -> None:
    """And what the old test says then is of no interest."""
    told = tried("memory", passes=1, pause_s=60)
    told.absolve("a")
    passes(told, 2)
    old = told.case("a").probation.test
    if interrupts == "it is lost":
        told.lose("a")
        told.hear("a")
    else:
        told.restart()
    assert of("tests", told.wait(60)) == ["memory"]
    assert told.tell(TestEnded(node="a", test=old, verdict=Verdict.FAIL)) == []
    passes(told, 3)
    assert told.state("a") is IN_SERVICE


def test_a_node_without_any_test_comes_back_by_its_evidence(quarantine: Any) -> None:
    """There is nothing that it could be tested with."""
    told = quarantine(3)
    told.describe("a", own_checks=())
    told.lose("a")
    told.wait(601)
    assert told.state("a") is CORDONED
    told.hear("a")
    assert told.state("a") is IN_SERVICE


@pytest.mark.parametrize(
    ("usual", "tests"), [(("nvml", "storage"), ["gemm", "nvml"]), (("gemm", "storage"), ["gemm"]), ((), ["gemm"])]
)
def test_a_node_that_announces_fewer_checks_is_still_tested(tried: Any, of: Of, usual: Any, tests: list[str]) -> None:
    """With the checks that it had before, except those that most nodes no longer have."""
    told = tried()
    told.absolve("a")
    told.describe("a", own_checks=(), usual_checks=usual)
    told.end_test("a", Verdict.UNKNOWN)
    said = len(told.said)
    told.wait(3600)
    passes(told, len(tests))
    assert of("tests", told.said[said:])[: len(tests)] == tests
    assert told.case("a").own_checks == tuple(sorted({"gemm", "nvml"} & set(usual)))


# When it may be tested


def test_what_nothing_stands_against_any_more_may_return(quarantine: Any) -> None:
    """After it has been out for as long as it has to be."""
    told = quarantine(3, returning=ReturnSettings(wait_s=600))
    told.accuse("a", "gemm.slow")
    told.absolve("a")
    told.wait(599)
    assert told.state("a") is CORDONED
    told.wait(1)
    assert told.state("a") is PROBATION
    assert told.transition("a").reason == "all faults have cleared"


def test_what_was_away_and_is_back_may_return(quarantine: Any) -> None:
    """Somebody may have repaired it, which tests will show."""
    told = quarantine(3)
    told.accuse("a", "nvml.gone")
    told.lose("a")
    told.wait(100)
    assert told.state("a") is CORDONED
    told.hear("a")
    assert (told.state("a"), told.transition("a").reason) == (PROBATION, "it was away and is back")


@pytest.mark.parametrize(
    "keeps",
    [
        pytest.param(lambda told: told.hold("a"), id="somebody holds it"),
        pytest.param(lambda told: told.survey("a", Mark.FOREIGN), id="somebody else has cordoned it"),
        pytest.param(lambda told: told.survey("a", Mark.OURS, opted_out=True), id="it has opted out"),
        pytest.param(lambda told: told.survey("a", Mark.OURS, leaving="reboot"), id="it is about to leave"),
        pytest.param(lambda told: told.lose("a"), id="it is away"),
    ],
)
def test_it_stays_out_while(quarantine: Any, keeps: Callable[[Any], object]) -> None:
    """Nothing is done about a node that is not there or not ours to say."""
    told = quarantine(3)
    told.accuse("a", "gemm.slow")
    keeps(told)
    told.absolve("a")
    told.wait(86_400)
    assert told.state("a") is CORDONED


def test_it_is_back_when_what_kept_it_is_over(quarantine: Any) -> None:
    """Evidence went while somebody else kept it out."""
    told = quarantine(3)
    told.accuse("a", "gemm.slow")
    told.survey("a", Mark.FOREIGN)
    told.absolve("a")
    told.survey("a", Mark.OURS)
    assert told.state("a") is PROBATION


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.FAIL])
def test_a_held_node_in_probation_stays_there(quarantine: Any, of: Of, verdict: Verdict) -> None:
    """Whatever the test says that was under way; no other is begun until somebody releases it."""
    told = quarantine(3)
    told.accuse("a", "gemm.slow")
    told.absolve("a")
    told.hold("a")
    said = told.end_test("a", verdict)
    assert (told.state("a"), of("acts", said), of("tests", said)) == (PROBATION, [], [])
    assert of("tests", told.wait(86_400)) == []


# Again and again


@cases(
    ("taken_out", "expected"),
    [
        ((), 600),
        ((0.0,), 600),
        ((0.0, 0.0), 1200),
        ((0.0, 0.0, 0.0), 2400),
        ((0.0, 30 * DAY_S), 600 * 2**0.5),
        ((0.0, 3000 * DAY_S), 600),
        ((0.0,) * 10, 86_400),
        ((0.0,) * 100_000, 86_400),
    ],
)
def test_who_was_out_before_waits_longer(taken_out: tuple[float, ...], expected: float) -> None:
    """Twice as long for each time before, where what lies a month back counts half, up to a day."""
    assert wait_s(taken_out, ReturnSettings()) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("taken_out", "expected"),
    [((), False), ((0.0,) * 3, False), ((0.0,) * 4, True), ((0.0, 0.0, 0.0, 60 * DAY_S), False)],
)
def test_after_three_returns_a_person_is_needed(taken_out: tuple[float, ...], expected: bool) -> None:
    """Unless they are long ago."""
    assert needs_person(taken_out, ReturnSettings(times=3)) is expected


def test_a_repeater_waits_for_a_person(quarantine: Any, of: Of) -> None:
    """It says so, to whoever watches as well, stays out for good, and comes back when somebody releases it."""
    told = quarantine(3, returning=ReturnSettings(passes=1, pause_s=0, wait_s=0, times=2))
    for _ in range(2):
        told.accuse("a", "gemm.slow")
        told.absolve("a")
        passes(told, 2)
        assert told.state("a") is IN_SERVICE
    said = told.accuse("a", "gemm.slow")
    text = "drained 3 times; stays out until `muster quarantine release a`"
    assert text in of("notes", said)
    (alarm,) = of("alarms", told.wait(0))
    assert alarm.startswith("a was drained 3 times since ")
    assert alarm.endswith("; it stays out until `muster quarantine release a`")
    causes = [it.cause for it in said if isinstance(it, Note) and it.text == text]
    assert causes == [told.case("a").transition]
    told.absolve("a")
    told.restart()
    told.wait(365 * 86_400)
    assert told.state("a") is CORDONED
    told.release("a")
    passes(told, 2)
    assert told.state("a") is IN_SERVICE


def test_who_fails_its_tests_again_and_again_waits_for_a_person(quarantine: Any, of: Of) -> None:
    """It does not go to and fro between its tests and being out for ever."""
    told = quarantine(3)
    told.accuse("a", "gemm.slow")
    for _ in range(10):
        told.absolve("a")
        if told.state("a") is PROBATION:
            told.end_test("a", Verdict.FAIL)
    assert (told.state("a"), len(told.case("a").cordoned_at)) == (CORDONED, 4)
    told.wait(0)
    assert len(of("alarms", told.said)) == 1
