"""A fleet whose nodes report what they measured, and the baselines that learn from it."""

import random
from collections.abc import Iterable, Iterator
from typing import Any

from muster.check import Worse
from muster.model import Device, Inventory, Run, Verdict
from muster_coordinator.normal.baselines import Baselines

COMPARED = {"tflops": Worse.LOWER, "step_time_s": Worse.HIGHER}


CUDA = {"backend": "cuda", "gpu_model": "H200"}


def gemm(node: str, *values: float | None, metric: str = "tflops", number: int = 0, **more: Any) -> Run:
    facts = {**CUDA, "devices": [*range(len(values))], **more.pop("facts", {})}
    return Run(
        id=f"{node}-{number}",
        node=node,
        check="gemm",
        metrics={metric: [*values]},
        facts=facts,
        started_at=float(number),
        duration_s=1.0,
        **{"verdict": Verdict.PASS, **more},
    )


class Fleet:
    """Nodes that measure, and what stands against them."""

    def __init__(self, known: Baselines | None = None) -> None:
        self.baselines = Baselines() if known is None else known
        self.held: dict[str, dict[str, list[tuple[str, int | None]]]] = {}
        self.commands: list[Any] = []
        self.ever: set[tuple[str, str]] = set()
        self.now = 0.0
        self.gone: set[str] = set()

    def measure(self, run: Run, *devices: Device) -> None:
        self.now += 1
        compared = self.baselines.observe(run, COMPARED, Inventory(devices=devices), self.now)
        self.commands += compared.commands
        for (node, subject), findings in compared.held.items():
            self.held.setdefault(node, {})[subject] = [(finding.code, finding.device) for finding in findings]
            self.ever.update((node, finding.code) for finding in findings)

    def rounds(self, count: int, runs: Iterable[Any]) -> None:
        """Every node measures this number of times; `runs` makes the runs of each round."""
        for _ in range(count):
            for run in runs:
                if run.node not in self.gone:
                    self.measure(run)

    @property
    def against(self) -> dict[str, list[tuple[str, int | None]]]:
        every = {node: [found for each in held.values() for found in each] for node, held in self.held.items()}
        return {node: found for node, found in every.items() if found}

    @property
    def view(self) -> Any:
        (view,) = self.baselines.views()
        return view


class Round:
    """The runs of all nodes, anew each time: `level` of some nodes is not 1."""

    def __init__(self, seed: int, nodes: int, noise: float, levels: dict[str, float] | None = None) -> None:
        self.random = random.Random(seed)
        self.names = [f"n{number}" for number in range(nodes)]
        self.noise = noise
        self.levels = levels or {}

    def __iter__(self) -> Iterator[Run]:
        names = self.random.sample(self.names, len(self.names))
        for name in names:
            good = 700.0 * self.levels.get(name, 1.0)
            yield gemm(name, *(self.random.gauss(good, self.noise * good) for _ in range(2)))
