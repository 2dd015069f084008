"""Nodes that invent their measurements do not change what the other nodes are compared with."""

import random
from typing import Any

import pytest
from tests.lots import seeds

from muster.check import Worse
from muster.model import Device, Inventory, Json, Run, Verdict
from muster_coordinator.normal import baselines
from muster_coordinator.normal.baselines import Baselines
from muster_coordinator.normal.shares import Shares

COMPARED = {"tflops": Worse.LOWER}
PRODUCT = "bf16 8x8x8 seed 1"
RUNS = 6


class Compared:
    """A fleet whose nodes are compared. `ever` has every node that a finding ever stood against."""

    def __init__(self, nodes: int) -> None:
        self.baselines = Baselines()
        self._nodes = nodes
        self.held: dict[tuple[str, str], tuple[Any, ...]] = {}
        self.ever: set[str] = set()
        self._now = 0.0

    @property
    def accused(self) -> set[str]:
        return {node for (node, _), findings in self.held.items() if findings}

    def measure(
        self,
        node: str,
        values: list[float],
        bits: list[str],
        *,
        announced: int,
        **facts: Any,
    ) -> None:
        self._now += 1.0
        devices = tuple(Device(index=index, uuid=f"{node}-{index}", model="H200") for index in range(announced))
        known: Json = {
            "backend": "cuda",
            "gpu_model": "H200",
            "devices": [*range(len(values))],
            "models": ["H200"] * len(bits),
            "fingerprints": {PRODUCT: [*bits]},
        }
        run = Run(
            id=f"r{self._now}",
            node=node,
            check="gemm",
            verdict=Verdict.PASS,
            metrics={"tflops": [*values]},
            facts={**known, **facts},
            started_at=self._now,
            duration_s=1.0,
        )
        compared = self.baselines.observe(run, COMPARED, Inventory(devices=devices), self._now, alike=self._nodes)
        self.held.update(compared.held)
        self.ever |= {node for (node, _), findings in compared.held.items() if findings}


def lie(lots: random.Random) -> dict[str, Any]:
    """Random values, results and number of devices that a lying node reports."""
    claimed = lots.choice([1, 8, 64, 1000])
    value = lots.choice([0.0, 1e-300, 350.0, 690.0, 1400.0, 1e300])
    return {
        "values": [value] * claimed,
        "bits": [lots.choice(["evil", "good"])] * claimed,
        "announced": lots.choice([0, 1, 8, 64, 128]),
    }


@pytest.mark.parametrize("liars_first", [True, False])
@pytest.mark.parametrize("devices", [1, 8])
@pytest.mark.parametrize("nodes", [16, 60, 200])
@pytest.mark.parametrize("seed", seeds(1))
def test_a_twentieth_that_lies_makes_no_healthy_suspect(
    seed: int, nodes: int, devices: int, *, liars_first: bool
) -> None:
    """With any number of devices, any value and any result, even if they report first and agree."""
    lots = random.Random(f"{seed} {nodes} {devices} {liars_first}")
    names = [f"n{number}" for number in range(nodes)]
    liars = set(lots.sample(names, max(1, nodes // 20)))
    told = lie(lots)
    fleet = Compared(nodes)
    for _ in range(RUNS):
        for name in sorted(names, key=lambda node: (node in liars) is not liars_first):
            if name in liars:
                fleet.measure(name, **told)
            else:
                values = [lots.gauss(700.0, 7.0) for _ in range(devices)]
                fleet.measure(name, values, ["good"] * devices, announced=devices)
    assert fleet.ever <= liars
    worst = next(name for name in names if name not in liars)
    for _ in range(3):
        fleet.measure(worst, [500.0] * devices, ["bad"] * devices, announced=devices)
    assert worst in fleet.accused, "the liars hide a node that is bad"


def test_one_node_is_not_the_fleet() -> None:
    """With two nodes nothing is normal, even if one of them has a hundred devices."""
    fleet = Compared(2)
    for _ in range(RUNS):
        fleet.measure("liar", [1400.0] * 100, ["evil"] * 100, announced=100)
        fleet.measure("honest", [700.0], ["good"], announced=1)
    assert fleet.ever == set()


def test_devices_that_were_not_announced_do_not_count() -> None:
    """A node counts with at most as many devices as its inventory has."""
    fleet = Compared(2)
    for _ in range(RUNS):
        fleet.measure("liar", [1400.0] * 50, ["evil"] * 50, announced=2)
    assert [view.devices for view in fleet.baselines.views()] == [2]


def test_invented_facts_replace_no_real_baseline(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many of them one node invents, the baselines that most nodes share stay."""
    monkeypatch.setattr(baselines, "MAX_BASELINES", 20)
    fleet = Compared(13)
    for _ in range(RUNS):
        for number in range(12):
            fleet.measure(f"n{number}", [700.0], ["good"], announced=1)
    real = fleet.baselines.views()[0]
    for number in range(100):
        model = f"invented {number}"
        fleet.measure("liar", [700.0], ["good"], announced=1, gpu_model=model, models=[model])
    assert real in fleet.baselines.views()
    assert len(fleet.baselines) == 20


@pytest.mark.parametrize(
    ("sizes", "each"),
    [([], 1), ([8], 8), ([1, 64], 1), ([8, 8, 1000], 8), ([8, 8, 1], 8), ([4, 4, 8, 8], 4)],
)
def test_a_node_counts_with_at_most_the_median_number_of_devices(sizes: list[int], each: int) -> None:
    """In any order of announcement; `replace` says whether the median changed."""
    shares = Shares()
    changes = [shares.replace(0, size) for size in sizes]
    assert shares.each == each
    assert changes[:1] == [size > 1 for size in sizes[:1]]
    for size in sizes:
        shares.replace(size, 0)
    assert shares.each == 1
