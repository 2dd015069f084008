"""How many bad runs chance does not explain."""

from dataclasses import replace

from tests.cases import cases

from muster_coordinator.localize.significance import (
    partners_needed,
    path_runs_needed,
    runs_agree,
    runs_may_be_chance,
)
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


@cases(
    ("nodes", "reached", "good", "chance"),
    [
        (12, (0.3, 0.31), 0, False),
        (12, (0.3, 0.5), 0, True),
        (64, (0.3, 0.31), 0, True),
        (64, (0.3, 0.31, 0.32), 0, False),
        (64, (0.3, 0.31, 0.32), 20, True),
        (16384, (0.3, 0.5, 0.4, 0.3), 0, False),
    ],
)
def test_bad_runs_must_be_rare_by_chance(nodes: int, reached: tuple[float, ...], good: int, *, chance: bool) -> None:
    """The more nodes and the more good runs beside them, the more bad ones; fewer if they came to the same."""
    assert runs_may_be_chance(nodes, bad(*reached), good) is chance


def test_a_crash_is_no_chance() -> None:
    """Noise makes no ranks crash."""
    assert not runs_may_be_chance(16384, [replace(bad(None)[0], hard=True), *bad(0.3)], good=9)
