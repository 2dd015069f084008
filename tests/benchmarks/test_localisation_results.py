"""The scores of the localisation benchmark, kept in a file."""

from pathlib import Path

import pytest

pytest.importorskip("numpy")

from benchmarks.localisation.results import Cell, Results, Task, measured

CELL = Cell(nodes=16, case="rails", method="adaptive", noise=0.02, passes=1)


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """What the file holds is not measured again, and comes back as it was."""
    path = tmp_path / "scores.jsonl"
    first = Results(path)
    first.measure([Task(CELL, 0)], jobs=1)
    second = Results(path)
    assert second.cells == first.cells
    second.measure([Task(CELL, seed) for seed in range(3)], jobs=2)
    assert path.read_text().count("\n") == 3
    assert {seed: one.exact for seed, one in Results(path).cells[CELL].items()} == {0: 1, 1: 1, 2: 1}


def test_without_a_file_nothing_is_kept() -> None:
    """The scores are there all the same."""
    results = Results(None)
    results.measure([Task(CELL, 0)], jobs=1)
    assert results.cells[CELL][0].accused == 0
    assert measured(Task(CELL, 0)).exact == results.cells[CELL][0].exact
