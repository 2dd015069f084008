"""The cases of the localisation benchmark on the network of flows."""

import pytest

from muster_coordinator.localize.rules.culprit import Part
from muster_coordinator.model.probes import Probe

pytest.importorskip("numpy")

from benchmarks.localisation.methods import METHODS, MethodInput
from benchmarks.localisation.network_cases import (
    BREAKS,
    CALM,
    CONDITIONS,
    HEALTHY_TWINS,
    KNOWN_GAPS,
    NETWORK_CASES,
    is_possible,
)
from benchmarks.localisation.scenarios import Drawing, scenario_of
from benchmarks.localisation.scoring import play, score


def drawing(case: str, nodes: int = 64, method: str = "adaptive", seed: int = 0) -> Drawing:
    return Drawing(case, nodes, f"{case} {nodes} {seed}", method, noise=0.02)


@pytest.mark.parametrize("nodes", [2, 5, 16])
def test_every_condition_and_every_fault_make_a_scenario(nodes: int) -> None:
    """Of a fleet of any size; its nodes are the same by their names."""
    crossed = [f"{condition}: healthy" for condition in CONDITIONS] + [f"calm: {broken}" for broken in BREAKS]
    for case in crossed:
        if not is_possible(case, nodes):
            continue
        scenario = scenario_of(drawing(case, nodes))
        assert scenario.sites.keys() == {f"n{node}" for node in range(nodes)}
        assert scenario.normal > 0
        assert bool(scenario.truth.broken) is not case.endswith("healthy")


def test_a_fault_between_leaves_needs_two() -> None:
    """Up to eight nodes share one."""
    possible = {nodes: sum(is_possible(f"calm: {broken}", nodes) for broken in BREAKS) for nodes in (2, 8, 16)}
    assert possible[2] == possible[8] < possible[16] == len(BREAKS)


def test_the_sets_name_cases() -> None:
    """A set has no case that is not there, and the twins are all healthy ones."""
    assert {*KNOWN_GAPS, *HEALTHY_TWINS, *CALM} <= NETWORK_CASES.keys()
    assert len(HEALTHY_TWINS) == len(CONDITIONS)
    assert len(NETWORK_CASES) == len(CONDITIONS) * len(BREAKS)


@pytest.mark.parametrize("case", ["calm: a leaf at 40%, one label wrong", "a bad day: 5% of the nodes"])
def test_all_methods_meet_the_same_fleet(case: str) -> None:
    """The same faults, labels and busy nodes; only noise is their own."""
    scenarios = [scenario_of(drawing(case, method=method)) for method in METHODS]
    assert len({scenario.truth.faults for scenario in scenarios}) == 1
    assert all(scenario.sites == scenarios[0].sites for scenario in scenarios)
    assert len({scenario.normal for scenario in scenarios}) == 1


def test_draws_are_independent() -> None:
    """A bad node is busy, is in the first group, and is of the older generation as often as any other."""
    busy = first = older = 0
    for seed in range(250):
        scenario = scenario_of(drawing("two generations, declared: a node at 40%", seed=seed))
        (fault,) = scenario.truth.faults
        older += scenario.sites[fault.of[0]].hardware_kind == "old"
        planned = METHODS["adaptive"](MethodInput(scenario.sites, drawing("", seed=seed).name, 1, 400.0)).policy
        first += fault.of[0] in planned.next_groups((), frozenset())[0].members
        declining = scenario_of(drawing("a fifth declines: a node at 40%", seed=seed))
        (fault,) = declining.truth.faults
        declining.fabric.run_round([Probe((node,), "") for node in declining.sites])
        busy += fault.of[0] in declining.fabric.absent
    assert busy / 250 == pytest.approx(0.2, abs=0.08)
    assert older / 250 == pytest.approx(0.5, abs=0.1)
    assert first / 250 == pytest.approx(2 / 64, abs=0.035)


def test_two_generations_may_be_declared() -> None:
    """The nodes that are slow have a machine type of their own."""
    scenario = scenario_of(drawing("two generations, declared: healthy"))
    runs = scenario.fabric.run_round([Probe((node,), "") for node in scenario.sites])
    slow = {run.members[0] for run in runs if (run.objective or 0) < 300}
    assert len(slow) == 32
    assert slow == {node for node, site in scenario.sites.items() if site.hardware_kind == "old"}


def test_a_wrong_label_puts_a_healthy_node_into_the_bad_leaf() -> None:
    """The case has one, and it knows where the node really stands."""
    scenario = scenario_of(drawing("calm: a leaf at 40%, one label wrong"))
    (fault,) = scenario.truth.faults
    assert fault.part is Part.LEAF
    labelled = {node for node, site in scenario.sites.items() if site.leaf == fault.of[0]}
    really = {node for node, leaf in scenario.truth.leaf_of.items() if leaf == fault.of[0]}
    assert len(labelled - really) == 1
    assert really < labelled


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("case", "recalled", "healthy_named"), [("calm: a node at 40%", 1, 0), ("calm: healthy", 0, 0)]
)
def test_a_method_is_scored(method: str, case: str, recalled: int, healthy_named: int) -> None:
    """Every method finds one slow node in a calm fleet, and nothing in a healthy one."""
    scenario = scenario_of(drawing(case, method=method))
    made = METHODS[method](MethodInput(scenario.sites, "1", 1, scenario.normal))
    played = play(made.policy, scenario.fabric)
    one = score(scenario.sites, played, made.answer(played.runs), scenario.truth)
    assert (one.exact, one.touched, one.healthy_named) == (recalled, recalled, healthy_named)
    assert one.verdict == ("FAIL" if recalled else "PASS")


@pytest.mark.parametrize("case", ["2:1: a node at 70%", "2:1: a leaf at 40%"])
def test_contention_hides_nothing_in_a_large_fleet(case: str) -> None:
    """All pairs across leaves reach half of what they could; the few inside leaves show it."""
    scenario = scenario_of(drawing(case, 1024))
    made = METHODS["adaptive"](MethodInput(scenario.sites, "1", 1, scenario.normal))
    played = play(made.policy, scenario.fabric)
    assert made.answer(played.runs).named == scenario.truth.faults
