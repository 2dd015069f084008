"""How many nodes may be out at once, and how quickly they may go."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.cases import cases

from muster.model import ServiceState, Verdict
from muster.quarantine_settings import BudgetSettings, ReturnSettings
from muster.transition import Effect, Mark
from muster_coordinator.model.findings import Proof
from muster_coordinator.quarantine.budget import Limits

Of = Callable[..., list[Any]]

SLOW = BudgetSettings(share="100%", domain_share="100%", per_minute=0.5)


@cases(
    ("settings", "limits"),
    [
        pytest.param({}, {0: 0, 1: 0, 2: 1, 3: 1, 4: 1, 10: 1, 19: 1, 20: 2, 64: 6, 10_000: 1000}, id="10%"),
        pytest.param({"share": "0.1%"}, {1: 0, 2: 1, 1000: 1, 10_000: 10}, id="one may, however small the share"),
        pytest.param({"share": "100%"}, {1: 0, 2: 1, 3: 2, 4: 3, 10_000: 9999}, id="never the last one"),
        pytest.param({"share": "50%", "nodes": 3}, {2: 1, 4: 2, 6: 3, 1000: 3}, id="a cap"),
        pytest.param({"share": "29%"}, {100: 29}, id="shares of whole numbers are exact"),
    ],
)
def test_how_many_may_be_away(settings: dict[str, Any], limits: dict[int, int]) -> None:
    """Of few nodes one may, so that small fleets heal as well, but never the last."""
    budget = Limits(BudgetSettings(**settings))
    assert {members: budget.limit(members) for members in limits} == limits


@pytest.mark.parametrize("nodes", [1, 2, 3, 4, 5, 30])
@pytest.mark.parametrize("share", ["10%", "40%", "100%"])
def test_no_more_go_than_may(quarantine: Any, nodes: int, share: str) -> None:
    """When all nodes are bad, as many are out as may be, all others are HELD, and one at least goes on working."""
    told = quarantine(budget=BudgetSettings(share=share, domain_share="100%", per_minute=6000))
    names = [f"n{number:02}" for number in range(nodes)]
    told.add(*names)
    for name in names:
        told.accuse(name, "gemm.slow")
    told.wait(1)
    limit = min(max(1, nodes * int(share[:-1]) // 100), nodes - 1)
    assert told.states() == "C" * limit + "H" * (nodes - limit)


def test_who_waits_says_why(quarantine: Any, of: Of) -> None:
    """In the case, the story and to whoever is told, as it is now."""
    told = quarantine(3, budget=BudgetSettings(domain_share="100%", per_minute=6000))
    told.accuse("a", "gemm.slow")
    said = told.accuse("b", "gemm.slow")
    why = "Not drained: budget of 1 of 3 reached"
    assert told.case("b").held_because == why
    assert of("acts", said) == [("b", ServiceState.HELD, ())]
    assert f"IN_SERVICE to HELD: {why}" in of("notes", said)
    told.add("d")
    told.wait(1)
    assert told.case("b").held_because == "Not drained: budget of 1 of 4 reached"


def test_the_last_node_says_that_it_is(quarantine: Any) -> None:
    """It is HELD however bad it is."""
    told = quarantine(1)
    told.accuse("a", "nvml.gone")
    assert told.case("a").held_because == "Not drained: the last node in service is never drained"


def test_each_failure_domain_has_its_own(quarantine: Any) -> None:
    """Half of a rack may go, and what waits there does not keep another rack's nodes waiting."""
    told = quarantine(budget=BudgetSettings(share="100%", per_minute=6000))
    told.add("a", "b", "c", "d", place="r1")
    told.add("e", "f", place="r2")
    for name in ("a", "b", "c", "e"):
        told.accuse(name, "gemm.slow")
    assert told.states() == "CCHICI"
    assert told.case("c").held_because == "Not drained: budget of rack r1, 2 of 4, reached"


def test_nodes_of_which_nobody_knows_where_they_stand_share_no_domain(quarantine: Any) -> None:
    """Only the fleet's budget holds for them."""
    told = quarantine(budget=BudgetSettings(share="100%", domain_share="10%", per_minute=6000))
    told.add("a", "b", "c", place=None)
    told.accuse("a", "gemm.slow")
    told.accuse("b", "gemm.slow")
    assert told.states() == "CCI"


@pytest.mark.parametrize(
    "goes_away",
    [
        pytest.param(lambda told: told.lose("a"), id="it is silent"),
        pytest.param(lambda told: told.survey("a", Mark.FOREIGN), id="somebody else has cordoned it"),
        pytest.param(lambda told: told.survey("a", Mark.OURS), id="a mark of ours is still there"),
        pytest.param(lambda told: told.survey("a", Mark.NONE, keeps_off="taint x"), id="others keep work off it"),
    ],
)
def test_whatever_keeps_a_node_away_counts(quarantine: Any, goes_away: Callable[[Any], object]) -> None:
    """The budget protects the capacity that is left, whoever took the rest."""
    told = quarantine(3, budget=BudgetSettings(domain_share="100%", per_minute=6000))
    goes_away(told)
    told.accuse("b", "gemm.slow")
    assert told.state("b") is ServiceState.HELD


def test_a_node_that_others_keep_work_off_may_still_go(quarantine: Any) -> None:
    """A taint says nothing about who may cordon the node, and cordoning it takes no further capacity."""
    told = quarantine(3, budget=BudgetSettings(domain_share="100%", per_minute=6000))
    told.survey("a", Mark.NONE, keeps_off="taint x")
    told.accuse("a", "gemm.slow")
    assert told.state("a") is ServiceState.CORDONED


def test_the_budget_names_what_others_keep_work_off(quarantine: Any) -> None:
    """By how they do; a new node is no capacity, and not among them."""
    told = quarantine(3)
    told.add("n", fit=False)
    for node in ("n", "c", "a"):
        told.survey(node, Mark.NONE, keeps_off="taint x")
    told.survey("b", Mark.NONE, "slurm", keeps_off="taint y")
    view = told.reconciler.fleet_view()
    assert view.away == 3
    assert [(it.how, it.nodes) for it in view.kept_off] == [("k8s: taint x", ("a", "c")), ("slurm: taint y", ("b",))]
    told.survey("b", Mark.NONE, "slurm")
    assert (told.reconciler.fleet_view().away, len(told.reconciler.fleet_view().kept_off)) == (2, 1)


def test_a_node_is_away_until_all_actors_have_uncordoned_it(quarantine: Any) -> None:
    """The return is decided at once, but makes no room before every actor has answered and none failed."""
    told = quarantine(3, budget=BudgetSettings(domain_share="100%", per_minute=6000))
    told.accuse("a", "gemm.slow")
    told.release("a", untested=True)
    away = [told.reconciler.fleet_view().away]
    for actor, effect in (("pager", Effect.DONE), ("k8s", Effect.FAILED), ("k8s", Effect.DONE)):
        told.answer("a", effect, actor, all_called=actor == "k8s")
        told.restart()
        away.append(told.reconciler.fleet_view().away)
    assert away == [1, 1, 1, 0]


def test_a_return_that_fails_for_good_uses_the_budget_up(quarantine: Any) -> None:
    """However often that happens: no node after it goes."""
    told = quarantine(10, budget=BudgetSettings(domain_share="100%", per_minute=6000))
    for name in "abc":
        told.accuse(name, "gemm.slow")
        if told.state(name) is ServiceState.CORDONED:
            told.release(name, untested=True)
            told.answer(name, Effect.FAILED)
    assert told.states() == "IHHIIIIIII"


def test_a_node_that_comes_back_and_must_wait_is_still_away(quarantine: Any) -> None:
    """What it is HELD for is said in a transition of its own, and all actors must have uncordoned it as well."""
    told = quarantine(4, budget=BudgetSettings(domain_share="100%", per_minute=1))
    told.accuse("a", "gemm.slow")
    told.release("a", untested=True)
    told.wait(1)
    told.accuse("a", "gemm.slow")
    assert (told.state("a"), told.reconciler.fleet_view().away) == (ServiceState.HELD, 1)
    told.answer("a", Effect.DONE)
    assert told.reconciler.fleet_view().away == 0


def test_that_the_budget_is_used_up_is_told_once(quarantine: Any, of: Of) -> None:
    """With the first node that waits for room, and again only after none has."""
    told = quarantine(5, budget=BudgetSettings(domain_share="100%", per_minute=6000))
    for name in "abcd":
        told.accuse(name, "gemm.slow")
    told.wait(0)
    assert of("alarms", told.said) == ["3 faulty nodes not drained: budget of 1 of 5 reached"]
    for name in "bcd":
        told.absolve(name)
    told.wait(1)
    assert of("alarms", told.wait(60)) == ["No faulty node waits for room in the fleet any more"]
    told.accuse("b", "gemm.slow")
    assert of("alarms", told.wait(0)) == ["1 faulty node not drained: budget of 1 of 5 reached"]


def test_a_node_that_is_away_anyway_needs_no_room(quarantine: Any) -> None:
    """A lost node that the policy takes out costs nothing more."""
    told = quarantine(3, budget=BudgetSettings(domain_share="100%", per_minute=6000))
    told.lose("a")
    told.wait(601)
    assert told.state("a") is ServiceState.CORDONED


def test_new_nodes_are_no_capacity_yet(quarantine: Any) -> None:
    """Ten that are not accepted make no room for another to go."""
    told = quarantine(2, budget=BudgetSettings(share="50%", domain_share="100%", per_minute=6000))
    told.add(*(f"n{number}" for number in range(10)), fit=False)
    told.accuse("a", "gemm.slow")
    told.accuse("b", "gemm.slow")
    assert told.states()[:2] == "CH"


def test_so_many_go_in_a_minute(quarantine: Any) -> None:
    """Six at once, in the order of their findings; the seventh when the first is a minute ago."""
    told = quarantine(8, budget=BudgetSettings(share="100%", domain_share="100%", per_minute=6))
    for name in "gfedcba":
        told.wait(0.001)
        told.accuse(name, "gemm.slow")
    assert told.states() == "HCCCCCCI"
    told.wait(59.9)
    assert told.states() == "HCCCCCCI"
    told.wait(0.1)
    assert told.states() == "CCCCCCCI"


def test_never_more_go_in_any_minute(quarantine: Any) -> None:
    """Who has gone leaves room one by one, as each of them is a minute ago."""
    told = quarantine(12, budget=BudgetSettings(share="100%", domain_share="100%", per_minute=3))
    for name in "abc":
        told.accuse(name, "gemm.slow")
        told.wait(10)
    for name in "defg":
        told.accuse(name, "gemm.slow")
    out = []
    for _ in range(9):
        out.append(told.states().count("C"))
        told.wait(10)
    assert out == [3, 3, 3, 4, 5, 6, 6, 6, 6]


def test_one_goes_in_several_minutes_where_the_settings_say_so(quarantine: Any) -> None:
    """`per_minute = 0.5` is one in two minutes."""
    told = quarantine(4, budget=BudgetSettings(share="100%", domain_share="100%", per_minute=0.5))
    for name in "ab":
        told.accuse(name, "gemm.slow")
    told.wait(119)
    assert told.states() == "CHII"
    told.wait(1)
    assert told.states() == "CCII"


def test_quiet_times_are_not_saved_up(quarantine: Any) -> None:
    """After a day without trouble not more may go at once than in a minute."""
    told = quarantine(20, budget=BudgetSettings(share="100%", domain_share="100%", per_minute=2))
    told.wait(86_400)
    for node in "abcdefgh":
        told.accuse(node, "gemm.slow")
    assert told.states().count("C") == 2


def test_a_restart_gives_no_new_allowance(quarantine: Any) -> None:
    """A coordinator that restarts again and again takes out no more nodes than another."""
    told = quarantine(6, budget=BudgetSettings(share="100%", domain_share="100%", per_minute=2))
    for name in "abcd":
        told.accuse(name, "gemm.slow")
        told.restart()
        told.wait(0.1)
    assert told.states().count("C") == 2
    told.wait(60)
    assert told.states().count("C") == 4


def test_a_clock_that_is_set_back_stops_nobody(quarantine: Any) -> None:
    """A day back is no day without cordons."""
    told = quarantine(4, budget=BudgetSettings(share="100%", domain_share="100%", per_minute=1))
    told.accuse("a", "gemm.slow")
    told.now -= 86_400
    told.accuse("b", "gemm.slow")
    assert told.states() == "CCII"


def test_the_worst_goes_first_when_there_is_room(quarantine: Any) -> None:
    """Among those that wait, and before one that comes just then and is less bad."""
    told = quarantine(5, budget=BudgetSettings(domain_share="100%", per_minute=6000))
    told.accuse("a", "nvml.gone")
    told.accuse("b", "gemm.slow")
    told.accuse("c", "nvml.gone")
    assert told.states() == "CHHII"
    told.let_in("a")
    told.accuse("d", "gemm.slow")
    assert told.states() == "IHHHI", "what waits is worse than d"
    told.wait(1)
    assert told.states() == "IHCHI"


def test_one_that_is_worse_than_all_that_wait_goes_at_once(quarantine: Any) -> None:
    """It does not wait for those that it goes before."""
    told = quarantine(5, budget=BudgetSettings(domain_share="100%", per_minute=6000))
    told.accuse("a", "gemm.slow")
    told.accuse("b", "gemm.slow")
    told.let_in("a")
    told.accuse("c", "nvml.gone")
    assert told.states() == "IHCII"


@pytest.mark.parametrize("keeps", ["a hold", "a foreign cordon", "an opt-out", "stale evidence"])
def test_one_that_may_not_go_keeps_nobody_waiting(quarantine: Any, keeps: str) -> None:
    """Neither what is not ours to take nor what is not proven any more stands before others."""
    told = quarantine(5, budget=BudgetSettings(share="60%", domain_share="100%", nodes=2, per_minute=6000))
    told.accuse("a", "gemm.slow")
    told.accuse("b", "gemm.slow")
    told.accuse("c", "nvml.gone")
    assert told.states() == "CCHII"
    match keeps:
        case "a hold":
            told.hold("c")
        case "a foreign cordon":
            told.survey("c", Mark.FOREIGN)
            told.let_in("b")
        case "an opt-out":
            told.survey("c", Mark.NONE, opted_out=True)
        case "stale evidence":
            told.wait(3601)
            told.accuse("c", "gemm.slow", proof=Proof.ONCE)
    told.let_in("a")
    told.accuse("d", "gemm.slow")
    assert (told.state("c"), told.state("d")) == (ServiceState.HELD, ServiceState.CORDONED)


def test_coming_back_is_never_held_up(quarantine: Any) -> None:
    """Neither by a budget that is used up many times over nor by its rate."""
    told = quarantine(6, budget=BudgetSettings(share="100%", domain_share="100%", per_minute=6000))
    for name in "abc":
        told.accuse(name, "gemm.slow")
    told.restart(budget=BudgetSettings(share="1%", per_minute=0.001))
    for name in "abc":
        told.release(name, untested=True)
    assert told.states() == "IIIIII"


def test_a_failed_test_uses_up_no_rate_after_a_restart(quarantine: Any) -> None:
    """The node was out already, and stays out."""
    told = quarantine(4, budget=SLOW, returning=ReturnSettings(wait_s=0, pause_s=0))
    told.accuse("a", "nvml.gone")
    told.absolve("a")
    told.wait(130)
    told.end_test("a", Verdict.FAIL)
    told.restart()
    told.accuse("b", "nvml.gone")
    assert told.states() == "PCII"


def test_a_dry_run_uses_up_no_rate_when_it_is_over(quarantine: Any) -> None:
    """Nothing was drained in it. Another dry run goes on with what it has used up."""
    told = quarantine(4, mode="dry-run", budget=SLOW)
    told.accuse("a", "nvml.gone")
    told.restart()
    told.accuse("b", "nvml.gone")
    assert told.states() == "CHII"
    told.restart(mode="enforce")
    told.wait(1)
    assert told.states() == "CHII", "the first of them again, now in earnest"
