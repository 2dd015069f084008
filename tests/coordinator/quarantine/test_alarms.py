"""Alarms: begun once and ended once, however often what they are about comes and goes."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from muster.alarm import Alarm
from muster.model import ServiceState, Verdict
from muster.quarantine_settings import BudgetSettings, MassEventSettings, ReturnSettings
from muster.transition import Effect, Mark
from muster_coordinator.model.findings import cause_label
from muster_coordinator.model.quarantine import FleetState
from muster_coordinator.model.quarantine_events import ActionEnded, NodeErased, QuarantineCommand, SendAlarm
from muster_coordinator.quarantine.alarm_texts import MOST_CHARACTERS
from muster_coordinator.quarantine.alarms import CALM_S, FAILING_S

Of = Callable[..., list[Any]]

FULL = BudgetSettings(share="1%", domain_share="100%", per_minute=6000)


def sent(said: Iterable[QuarantineCommand]) -> list[Alarm]:
    return [command.alarm for command in said if isinstance(command, SendAlarm)]


def gist(said: Iterable[QuarantineCommand]) -> list[tuple[str, str, bool]]:
    """Kind, subject, and whether it is over."""
    return [(alarm.kind, alarm.subject, alarm.is_over) for alarm in sent(said)]


def fail(told: Any, node: str, detail: str = "slurmctld did not answer", *, only_tells: bool = False) -> None:
    """Tells that Slurm could not carry out the latest transition of a node."""
    transition = told.transition(node).id
    told.tell(
        ActionEnded(
            node=node,
            transition=transition,
            actor="slurm",
            effect=Effect.FAILED,
            detail=detail,
            only_tells=only_tells,
        )
    )


def works(told: Any, node: str) -> None:
    """Tells that Slurm carried it out."""
    told.answer(node, Effect.DONE, "slurm")


@pytest.fixture
def cordoned(quarantine: Any) -> Any:
    """Four nodes, of which the first must go, and Slurm has not answered yet."""
    told = quarantine(4)
    told.accuse("a", "gemm.slow")
    return told


@pytest.fixture
def full(quarantine: Any) -> Any:
    """Five nodes, of which one may be away, and is; nobody waits."""
    told = quarantine(5, budget=FULL)
    told.accuse("a", "gemm.slow")
    return told


def test_an_actor_that_fails_is_an_alarm_after_a_minute(cordoned: Any) -> None:
    """Not before: most failures are over by then. It is over when there was none for a minute."""
    fail(cordoned, "a")
    assert sent(cordoned.wait(FAILING_S - 1)) == []
    (begun,) = sent(cordoned.wait(1))
    assert (begun.kind, begun.subject, begun.is_over) == ("ACTION", "slurm", False)
    assert begun.text == "slurm does not drain a: slurmctld did not answer"
    fail(cordoned, "a")
    assert sent(cordoned.wait(1000)) == []
    works(cordoned, "a")
    assert sent([*cordoned.wait(0), *cordoned.wait(CALM_S - 1)]) == []
    (over,) = sent(cordoned.wait(1))
    assert (over.text, over.since, over.ended_at) == ("slurm drains again", begun.since, cordoned.now)
    assert sent(cordoned.wait(1000)) == []
    assert cordoned.fleet.alarms == ()


def test_an_actor_that_works_now_and_then_is_one_alarm(cordoned: Any) -> None:
    """It fails and works in turn for an hour, for longer and for less than a minute: one begin, one end."""
    said: list[QuarantineCommand] = []
    for _ in range(20):
        fail(cordoned, "a")
        said += cordoned.wait(FAILING_S + 70)
        works(cordoned, "a")
        said += [*cordoned.wait(0), *cordoned.wait(CALM_S - 10)]
    assert gist(said) == [("ACTION", "slurm", False)]
    assert gist(cordoned.wait(CALM_S)) == [("ACTION", "slurm", True)]


def test_failures_that_are_over_within_a_minute_are_no_alarm(cordoned: Any) -> None:
    """However many there are."""
    said: list[QuarantineCommand] = []
    for _ in range(100):
        fail(cordoned, "a")
        said += cordoned.wait(FAILING_S - 1)
        works(cordoned, "a")
        said += cordoned.wait(1)
    assert sent(said) == []


def test_a_notifier_that_fails_is_no_alarm(cordoned: Any) -> None:
    """No node gets work because of it."""
    fail(cordoned, "a", only_tells=True)
    assert sent(cordoned.wait(1000)) == []


def test_thousands_of_nodes_that_one_actor_fails_for_are_one_alarm(quarantine: Any) -> None:
    """Its text names a few, and is bounded whatever the actor writes."""
    told = quarantine(mass_event=MassEventSettings(nodes=5000))
    nodes = [f"n{number:04}" for number in range(2000)]
    told.add(*nodes)
    for node in nodes[:-1]:
        told.accuse(node, "gemm.slow")
        fail(told, node, "<html>\n" * 10_000)
    (alarm,) = sent(told.wait(FAILING_S))
    assert alarm.text.startswith("slurm does not drain n0000, n0001, n0002, n0003, n0004 and 1994 more: <html> <html>")
    assert len(alarm.text) <= MOST_CHARACTERS
    for node in nodes[:500]:
        works(told, node)
    assert sent(told.wait(1000)) == []
    (shown,) = told.reconciler.fleet_view().alarms
    assert "n0500, n0501" in shown.text


def test_it_says_what_the_actor_does_not_do(cordoned: Any) -> None:
    """Nodes that it does not drain, and nodes that it does not resume."""
    told = cordoned
    told.accuse("b", "gemm.slow")
    told.release("b", untested=True)
    for node in "ab":
        fail(told, node)
    (alarm,) = sent(told.wait(FAILING_S))
    assert alarm.text == "slurm does not drain a; does not resume b: slurmctld did not answer"


def test_a_node_that_no_actor_drains_is_an_alarm(cordoned: Any, of: Of) -> None:
    """As when Slurm knows it by another name. It says so in its story too, and is over once somebody drains it."""
    told = cordoned
    ended = ActionEnded(
        node="a", transition=told.transition("a").id, actor="slurm", effect=Effect.LEFT, detail="Slurm has no node a"
    )
    told.tell(ended)
    assert sent(told.wait(1000)) == []
    told.answer("a", Effect.LEFT, "k8s")
    said = told.wait(0)
    text = "No actor drains a: slurm: Slurm has no node a; k8s: so it was"
    assert [(alarm.kind, alarm.subject, alarm.text) for alarm in sent(said)] == [("ACTION", "node a", text)]
    assert text in of("notes", said)
    works(told, "a")
    told.wait(0)
    (over,) = sent(told.wait(CALM_S))
    assert over.text == "a is no longer out in name only: it is cordoned"


def test_a_node_that_somebody_else_drained_is_no_alarm(cordoned: Any) -> None:
    """All actors leave it as it is because of that, and their surveys say so."""
    cordoned.answer("a", Effect.LEFT)
    cordoned.survey("a", Mark.FOREIGN, detail="a new fan")
    assert sent(cordoned.wait(1000)) == []


def test_a_node_that_needs_a_person(quarantine: Any) -> None:
    """The release ends it at once, and a hold too; when the node fails again it begins again."""
    told = quarantine(3, returning=ReturnSettings(passes=1, pause_s=0, wait_s=0, times=1))
    told.accuse("a", "gemm.slow")
    told.absolve("a")
    told.end_test("a", Verdict.FAIL)
    assert gist(told.wait(0)) == [("PERSON", "a", False)]
    told.release("a")
    (over,) = sent(told.wait(0))
    assert over.text == "a does not wait for a person any more: it is probation"
    told.end_test("a", Verdict.FAIL)
    assert gist(told.wait(0)) == [("PERSON", "a", False)]
    told.hold("a")
    (over,) = sent(told.wait(0))
    assert over.text == "a does not wait for a person any more: Hold by ada: I look at it"


def test_a_node_that_is_erased_takes_its_alarm_with_it(quarantine: Any) -> None:
    """Nobody can release what is not remembered."""
    told = quarantine(3, returning=ReturnSettings(passes=1, pause_s=0, wait_s=0, times=1))
    told.accuse("a", "gemm.slow")
    told.absolve("a")
    told.end_test("a", Verdict.FAIL)
    assert gist(told.wait(0)) == [("PERSON", "a", False)]
    told.tell(NodeErased(node="a"))
    (over,) = sent(told.wait(0))
    assert over.text == "a does not wait for a person any more: it has left the fleet"


def test_a_node_that_flips_at_the_budget_is_one_alarm(full: Any) -> None:
    """Others take a node away and give it back: there is room, and then none, every few seconds."""
    full.accuse("b", "gemm.slow")
    full.hold("a")
    said = [*full.wait(1)]
    for _ in range(50):
        full.absolve("b")
        said += full.wait(20)
        full.accuse("b", "gemm.slow")
        said += full.wait(20)
    assert gist(said) == [("BUDGET", "fleet", False)]


def test_a_node_that_flips_at_the_threshold_of_a_mass_event_is_one_alarm(quarantine: Any) -> None:
    """Draining is frozen and goes on in turn, and people are told of one mass event."""
    told = quarantine(12, mass_event=MassEventSettings(nodes=3, share="1%", window_s=86_400))
    for node in "abc":
        told.accuse(node, "gemm.slow")
    said = [*told.wait(1)]
    for _ in range(50):
        told.absolve("c")
        said += told.wait(20)
        told.accuse("c", "gemm.slow")
        said += told.wait(20)
    assert gist(said) == [("MASS_EVENT", "gemm.slow", False)]
    told.absolve("c")
    told.wait(1)
    assert gist(told.wait(CALM_S)) == [("MASS_EVENT", "gemm.slow", True)]


def test_what_a_mass_event_leaves_frozen_is_said(quarantine: Any) -> None:
    """The end of one of two mass events lets nobody go."""
    told = quarantine(12, mass_event=MassEventSettings(nodes=3, share="1%", window_s=600))
    for node in "abc":
        told.accuse(node, "gemm.slow")
    for node in "def":
        told.accuse(node, "nvml.gone")
    assert len(sent(told.wait(0))) == 2
    told.absolve("a")
    told.wait(0)
    (over,) = sent(told.wait(CALM_S))
    assert over.text == "Mass event over: 2 nodes still report gemm.slow; draining stays frozen because of nvml.gone"


def test_observe_mode_freezes_nothing(quarantine: Any) -> None:
    """The alarm of a mass event asks nobody to lift what does not hold."""
    told = quarantine(3, mode="observe", mass_event=MassEventSettings(nodes=3, share="1%"))
    for node in "abc":
        told.accuse(node, "gemm.slow")
    (alarm,) = sent(told.wait(0))
    expected = "Mass event: 3 of 3 nodes report gemm.slow; nothing is drained, as the mode is observe"
    assert alarm.text == expected


@pytest.mark.parametrize(
    ("budget", "place", "subject", "text"),
    [
        (FULL, "r1", "fleet", "1 faulty node not drained: budget of 1 of 5 reached"),
        (
            BudgetSettings(share="100%", domain_share="1%", per_minute=6000),
            "r1",
            "rack r1",
            "1 faulty node not drained: budget of rack r1, 1 of 5, reached",
        ),
        (
            BudgetSettings(share="100%", domain_share="100%", per_minute=0.5),
            "r1",
            "rate",
            "1 faulty node not drained yet: rate limit of 0.5 in a minute reached",
        ),
    ],
    ids=["fleet", "domain", "rate"],
)
def test_each_limit_is_an_alarm_of_its_own(
    quarantine: Any, budget: BudgetSettings, place: str, subject: str, text: str
) -> None:
    """With what is used up."""
    told = quarantine(5, budget=budget)
    for node in "ab":
        told.accuse(node, "gemm.slow")
    (alarm,) = sent(told.wait(0))
    assert (alarm.subject, alarm.text) == (subject, text)


def test_the_last_node_is_an_alarm(quarantine: Any) -> None:
    """It is bad and gets work all the same."""
    told = quarantine(1)
    told.accuse("a", "gemm.slow")
    (alarm,) = sent(told.wait(0))
    assert alarm.text == "1 faulty node not drained: the last node in service is never drained"


def test_a_restart_raises_nothing_again(full: Any) -> None:
    """What stands is stored, with since when; it ends once, after the restart."""
    full.accuse("b", "gemm.slow")
    (begun,) = sent(full.wait(0))
    stored = FleetState.model_validate_json(full.fleet.model_dump_json())
    assert stored.alarms == (begun,)
    full.fleet = stored
    assert sent([*full.restart(), *full.wait(1), *full.wait(1000)]) == []
    full.absolve("b")
    full.wait(0)
    full.restart()
    full.wait(0)
    (over,) = sent(full.wait(CALM_S))
    assert (over.since, over.ended_at) == (begun.since, full.now)


def test_a_failing_actor_is_not_raised_again_by_a_restart(cordoned: Any) -> None:
    """Since when it fails is stored with the outcome."""
    fail(cordoned, "a")
    cordoned.wait(FAILING_S - 1)
    cordoned.restart()
    assert gist(cordoned.wait(1)) == [("ACTION", "slurm", False)]
    assert gist([*cordoned.restart(), *cordoned.wait(1), *cordoned.wait(1000)]) == []


def test_a_state_that_was_stored_without_alarms_opens() -> None:
    """As it was stored by earlier releases."""
    stored = FleetState.model_validate_json('{"mass_events": [], "lifted": ["gemm.slow"]}')
    assert stored == FleetState(lifted=("gemm.slow",))


def test_alarms_outlive_a_freeze_that_is_lifted(quarantine: Any) -> None:
    """Mass events and alarms are stored together, and each changes alone."""
    told = quarantine(4, budget=FULL, mass_event=MassEventSettings(nodes=3, share="1%", window_s=600))
    for node in "ab":
        told.accuse(node, "gemm.slow")
    assert gist(told.wait(0)) == [("BUDGET", "fleet", False)]
    told.accuse("c", "gemm.slow")
    assert gist(told.wait(1)) == [("MASS_EVENT", "gemm.slow", False)]
    told.lift()
    assert gist(told.wait(1)) == [("MASS_EVENT", "gemm.slow", True)]
    assert [alarm.subject for alarm in told.fleet.alarms] == ["fleet"]


def test_an_alarm_of_a_dry_run_is_raised_again_in_enforce_mode(quarantine: Any) -> None:
    """The alarm of the dry run is over: nobody may have been woken by it."""
    told = quarantine(3, mode="dry-run", mass_event=MassEventSettings(nodes=3, share="1%"))
    for node in "abc":
        told.accuse(node, "gemm.slow")
    (dry,) = sent(told.wait(0))
    assert (dry.dry_run, dry.text.endswith(" (dry run)")) == (True, True)
    told.restart(mode="enforce")
    over, begun = sent(told.wait(0))
    assert (over.dry_run, over.is_over, over.subject) == (True, True, "gemm.slow")
    assert (begun.dry_run, begun.is_over, begun.subject) == (False, False, "gemm.slow")


def test_the_view_shows_alarms_as_of_now(full: Any) -> None:
    """With the numbers of now; one whose cause is gone says so until it is over."""
    full.accuse("b", "gemm.slow")
    full.wait(0)
    full.accuse("c", "gemm.slow")
    (shown,) = full.reconciler.fleet_view().alarms
    assert shown.text == "2 faulty nodes not drained: budget of 1 of 5 reached"
    for node in "bc":
        full.absolve(node)
    full.wait(1)
    (shown,) = full.reconciler.fleet_view().alarms
    assert "(cleared at " in shown.text
    full.wait(CALM_S)
    assert full.reconciler.fleet_view().alarms == ()


def test_a_clock_that_is_set_back_ends_alarms_all_the_same(full: Any) -> None:
    """The minute starts again, and not when the clock is where it was."""
    full.accuse("b", "gemm.slow")
    full.wait(0)
    full.absolve("b")
    full.wait(1)
    full.now -= 86_400
    full.wait(1)
    assert gist(full.wait(CALM_S)) == [("BUDGET", "fleet", True)]


def test_a_held_node_that_somebody_holds_waits_for_no_room(full: Any) -> None:
    """A person knows of it."""
    full.accuse("b", "gemm.slow")
    assert gist(full.wait(0)) == [("BUDGET", "fleet", False)]
    full.hold("b")
    full.wait(0)
    assert (full.state("b"), gist(full.wait(CALM_S))) == (ServiceState.HELD, [("BUDGET", "fleet", True)])


def test_a_node_named_like_an_actor_has_its_own_alarm(quarantine: Any, of: Of) -> None:
    """The actor fails for a node, and a node of its name is out in name only. The node's story has only its own."""
    told = quarantine(3)
    told.add("slurm")
    told.accuse("slurm", "gemm.slow")
    told.answer("slurm", Effect.LEFT)
    told.accuse("a", "gemm.slow")
    fail(told, "a")
    said = told.wait(FAILING_S)
    in_name_only = "No actor drains slurm: k8s: so it was"
    assert {(alarm.subject, alarm.text) for alarm in sent(said)} == {
        ("node slurm", in_name_only),
        ("slurm", "slurm does not drain a: slurmctld did not answer"),
    }
    assert of("notes", said) == [in_name_only]


@pytest.mark.parametrize(
    ("cause", "label"),
    [
        ("kernel_log.xid 79", "XID 79"),
        ("kernel_log.sxid 12028", "SXID 12028"),
        ("gemm.slow", "gemm.slow"),
        ("nvml.xid", "nvml.xid"),
    ],
)
def test_a_cause_is_called_as_operators_call_it(cause: str, label: str) -> None:
    """XIDs and SXIDs by their numbers, all else by its code."""
    assert cause_label(cause) == label
