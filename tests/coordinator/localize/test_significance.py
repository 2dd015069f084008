"""How many bad runs chance does not explain."""

from tests.cases import cases

from muster_coordinator.localize.significance import partners_needed, path_runs_needed, runs_agree
from muster_coordinator.model.probes import GroupRun, RunOutcome


def bad(*reached: float | None) -> list[GroupRun]:
    return [GroupRun(group="g", members=("a", "b"), outcome=RunOutcome.BAD, objective=value) for value in reached]


@cases(("nodes", "partners", "runs"), [(4, 2, 3), (16, 3, 3), (232, 3, 4), (1024, 4, 4), (16384, 4, 5)])
def test_larger_fleets_ask_for_more(nodes: int, partners: int, runs: int) -> None:
    """One more partner for 67 times as many nodes, and one more run of a path, which has two ends, for 33 times."""
    apart = bad(0.3, 0.5)
    assert (partners_needed(nodes, apart), path_runs_needed(nodes, apart)) == (partners, runs)


@cases(("nodes", "partners", "runs"), [(4, 2, 2), (16, 2, 2), (232, 3, 3), (1024, 3, 3), (16384, 4, 4)])
def test_runs_that_come_to_the_same_say_more(nodes: int, partners: int, runs: int) -> None:
    """Two faults that come and go rarely hold runs back by as much."""
    close = bad(0.3, 0.32)
    assert (partners_needed(nodes, close), path_runs_needed(nodes, close)) == (partners, runs)


@cases(
    ("reached", "alike"),
    [((0.3,), True), ((0.3, 0.36, 0.42), True), ((0.3, 0.5), False), ((None, None), True), ((None, 0.3), False)],
)
def test_one_fault_leaves_all_runs_alike(reached: tuple[float | None, ...], alike: bool) -> None:
    """All break, or all come to the same but for noise."""
    assert runs_agree(bad(*reached)) is alike
