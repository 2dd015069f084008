"""Scores of the localisation benchmark: how one comes about, and a file that keeps them so that a run can go on."""

import gc
import json
import time
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.localisation.methods import METHODS, MethodInput
from benchmarks.localisation.scenarios import Drawing, scenario_of
from benchmarks.localisation.scoring import Score, play, score

from muster_coordinator.daemon import COLLECT_AFTER


class Cell(NamedTuple):
    """What is measured over and over with other seeds.

    `noise` is the relative standard deviation of a repetition, `max_parallel` bounds the nodes that run at once.
    """

    nodes: int
    case: str
    method: str
    noise: float
    passes: int
    max_parallel: int | None = None


class Task(NamedTuple):
    """One score to be had."""

    cell: Cell
    seed: int


def measured(task: Task) -> Score:
    """Plays one case. All methods get the same fabric, and noise of their own."""
    gc.set_threshold(*COLLECT_AFTER)  # as in a coordinator: plans make many objects and no garbage
    cell = task.cell
    drawn = f"{cell.case} {cell.nodes} {task.seed}"
    scenario = scenario_of(Drawing(cell.case, cell.nodes, drawn, cell.method, cell.noise, cell.max_parallel))
    method = METHODS[cell.method](MethodInput(scenario.sites, drawn, cell.passes, scenario.normal))
    played = play(method.policy, scenario.fabric)
    began = time.process_time()
    answer = method.answer(played.runs)
    played.plan_s += time.process_time() - began
    return score(scenario.sites, played, answer, scenario.truth)


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
