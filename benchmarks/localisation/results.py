"""Scores of the localisation benchmark: how one comes about, and a file that keeps them so that a run can go on."""

import json
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.localisation.cases import CASES
from benchmarks.localisation.fabric import Fabric, lots_of, sites_of
from benchmarks.localisation.methods import METHODS
from benchmarks.localisation.scoring import Score, play, score


class Cell(NamedTuple):
    """What is measured over and over with other seeds. `noise` is the relative standard deviation of a repetition."""

    nodes: int
    case: str
    method: str
    noise: float
    passes: int


class Task(NamedTuple):
    """One score to be had."""

    cell: Cell
    seed: int


def measured(task: Task) -> Score:
    """Plays one case. All methods get the same fabric, and noise of their own."""
    cell = task.cell
    sites = sites_of(cell.nodes)
    drawn = f"{cell.case} {cell.nodes} {task.seed}"
    faults = CASES[cell.case](sites, lots_of(drawn))
    method = METHODS[cell.method](sites, drawn, cell.passes)
    fabric = Fabric(sites, faults, cell.noise, lots_of(f"{drawn} {cell.method}"))
    played = play(method.policy, fabric)
    return score(sites, played, method.answer(played.runs), faults)


class Results:
    """Scores by cell and seed; with a `path`, what its file holds already, one JSON object in each line."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self.cells: dict[Cell, dict[int, Score]] = defaultdict(dict)
        if path is not None and path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                self._load(json.loads(line))

    def measure(self, tasks: Iterable[Task], jobs: int) -> None:
        """Adds the scores that are missing, in the order of the tasks, computed by this number of processes."""
        lacking = [task for task in tasks if task.seed not in self.cells[task.cell]]
        with ProcessPoolExecutor(jobs) as processes:
            for task, one in zip(lacking, processes.map(measured, lacking), strict=True):
                self.cells[task.cell][task.seed] = one
                self._append(task, one)

    def _load(self, kept: dict[str, Any]) -> None:
        task = Task(Cell(**kept["cell"]), kept["seed"])
        self.cells[task.cell][task.seed] = Score(**kept["score"])

    def _append(self, task: Task, one: Score) -> None:
        if self._path is not None:
            kept = {"cell": task.cell._asdict(), "seed": task.seed, "score": asdict(one)}
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(kept) + "\n")
