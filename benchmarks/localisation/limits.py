"""What a sweep can and cannot find: the smallest loss that it finds, and how often it names something healthy.

Method: the adaptive strategy sweeps the simulated network of flows. In a fleet of 64 nodes unless said otherwise, one
node delivers a share of normal; over seeds, noise, passes and sizes. The smallest loss found is the least one from
which on 95 % of such nodes are named. Each sweep says how large a loss it would have found: `stated_loss` tells whether
that is true. Healthy fleets under every condition say how often something healthy is named.
Faults that come and go are swept day after day (`history`).

`python -m benchmarks.localisation.limits` takes four to ten minutes on two cores. It writes the figures
(docs/reference/limits.json), the picture beside them, and the page by way of docs/generate.py.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.localisation.history import FAULTY, Chain, Series, played
from benchmarks.localisation.intervals import interval_of
from benchmarks.localisation.limits_plot import plot
from benchmarks.localisation.methods import OURS, MethodInput, adaptive
from benchmarks.localisation.network_cases import CONDITIONS, HEALTHY, NetworkCase, a_node
from benchmarks.localisation.results import Cell, Task, measured
from benchmarks.localisation.scenarios import Drawing, on_network
from benchmarks.localisation.scoring import Score, play, score
from benchmarks.localisation.stated_loss import stated_losses

from muster.model import format_instant

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"

LOSSES = (0.1, 0.125, 0.15, 0.175, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6)
NOISES = (0.01, 0.02, 0.05, 0.1)
PASSES = (1, 2, 4, 8)
SIZES = (2, 3, 4, 5, 6, 8, 16, 64, 256)
USUAL_NODES, USUAL_NOISE = 64, 0.02

FOUND = 0.95
"""Share of the faulty nodes that are named from the smallest loss on."""

SWEEPS = 20
"""One a day, of the fleets with a fault that comes and goes."""


class Setting(NamedTuple):
    """What a curve goes over."""

    nodes: int
    noise: float
    passes: int


class Faulty(NamedTuple):
    """One sweep of a fleet in which one node falls short by `loss`."""

    setting: Setting
    loss: float
    seed: int


def swept(task: Faulty) -> Score:
    """The score of the sweep."""
    nodes, noise, passes = task.setting
    drawn = f"limits {task.setting} {task.loss} {task.seed}"
    case: NetworkCase = lambda count, lots: a_node(CONDITIONS["calm"](count), lots, share=1 - task.loss)  # noqa: E731
    scenario = on_network(Drawing("calm: a node", nodes, drawn, OURS, noise), case)
    method = adaptive(MethodInput(scenario.sites, drawn, passes, scenario.normal))
    result = play(method.policy, scenario.fabric)
    return score(scenario.sites, result, method.answer(result.runs), scenario.truth)


def settings() -> list[Setting]:
    """All combinations of noise and passes at one size, and all sizes at usual noise."""
    by_noise = [Setting(USUAL_NODES, noise, passes) for noise in NOISES for passes in PASSES]
    by_size = [Setting(nodes, USUAL_NOISE, passes) for nodes in SIZES for passes in (1, 4)]
    return [*dict.fromkeys([*by_noise, *by_size])]


def losses(processes: ProcessPoolExecutor, seeds: int) -> list[dict[str, Any]]:
    """For each setting and loss, the sweeps that named the node, and those that passed although it is slow."""
    found = []
    for setting in settings():
        tasks = [Faulty(setting, loss, seed) for loss in LOSSES for seed in range(seeds)]
        scores = [*processes.map(swept, tasks, chunksize=10)]
        by_loss = [scores[number * seeds : (number + 1) * seeds] for number in range(len(LOSSES))]
        named = [sum(one.touched for one in those) for those in by_loss]
        found.append(
            {
                **setting._asdict(),
                "named": named,
                "passed": [sum(one.verdict == "PASS" for one in those) for those in by_loss],
                "smallest": smallest_found(named, seeds),
            }
        )
    return found


def smallest_found(named: Sequence[int], seeds: int) -> float | None:
    """The smallest of LOSSES from which on nearly all nodes are named; None if not even the largest is."""
    smallest = None
    for loss, hits in reversed([*zip(LOSSES, named, strict=True)]):
        if hits < FOUND * seeds:
            break
        smallest = loss
    return smallest


def false_accusations(processes: ProcessPoolExecutor, seeds: int) -> list[dict[str, Any]]:
    """For each condition, the healthy fleets in which something was named, with the interval of the share."""
    found = []
    for condition in CONDITIONS:
        cell = Cell(USUAL_NODES, f"{condition}: {HEALTHY}", OURS, USUAL_NOISE, 1)
        scores = [*processes.map(measured, [Task(cell, seed) for seed in range(seeds)], chunksize=10)]
        false = sum(one.healthy_named > 0 for one in scores)
        low, high = interval_of(false, seeds)
        runs = sum(one.node_runs for one in scores) / seeds / USUAL_NODES
        found.append({"condition": condition, "false": false, "low": low, "high": high, "runs": runs})
    return found


def intermittent(processes: ProcessPoolExecutor, fleets: int) -> list[dict[str, Any]]:
    """For each fault that comes and goes, the fleets in which it was found after each day, with and without history."""
    found = []
    for case in FAULTY:
        for with_history in (False, True):
            chains = [Chain(case, USUAL_NODES, with_history, SWEEPS, seed) for seed in range(fleets)]
            series = [*processes.map(partial(played, noise=USUAL_NOISE), chains)]
            found.append({"case": case.removeprefix("calm: "), "history": with_history, **_of_series(series)})
    return found


def _of_series(series: Sequence[Series]) -> dict[str, Any]:
    sweeps = SWEEPS * len(series)
    false = sum(sum(one.false) for one in series)
    low, high = interval_of(false, sweeps)
    return {
        "found": [sum(one.found[day] for one in series) for day in range(SWEEPS)],
        "false": false,
        "low": low,
        "high": high,
        "runs": sum(sum(one.runs) for one in series) / sweeps,
    }


def main() -> None:
    """Measures and writes figures, picture and page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=30, help="fleets of each setting and loss")
    parser.add_argument(
        "--stated", type=int, default=30, help="fleets of each size that are asked what they could find"
    )
    parser.add_argument("--healthy", type=int, default=200, help="healthy fleets under each condition")
    parser.add_argument("--fleets", type=int, default=30, help="fleets that are swept day after day")
    parser.add_argument("--jobs", type=int, default=2, help="processes that simulate")
    parser.add_argument("--out", type=Path, default=REFERENCE, metavar="DIR", help="where figures and picture go")
    options = parser.parse_args()
    began = time.time()
    with ProcessPoolExecutor(options.jobs) as processes:
        figures = {
            "at": format_instant(began)[:10],
            "seeds": options.seeds,
            "healthy": options.healthy,
            "fleets": options.fleets,
            "loss": LOSSES,
            "losses": losses(processes, options.seeds),
            "stated": stated_losses(processes, options.stated),
            "false": false_accusations(processes, options.healthy),
            "intermittent": intermittent(processes, options.fleets),
        }
    (options.out / "limits.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    (options.out / "limits.svg").write_text(plot(figures), encoding="utf-8")
    print(f"measured in {time.time() - began:.0f} s")
    if options.out == REFERENCE:
        subprocess.run([sys.executable, REFERENCE.parent / "generate.py"], check=True)


if __name__ == "__main__":
    main()
