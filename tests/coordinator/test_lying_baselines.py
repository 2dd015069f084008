"""Nodes that make up what they measure: they move nothing that the others are compared by."""

import random
from typing import Any

import pytest

from muster.check import CheckInfo, Needs, Scope, Worse
from muster.model import Device, Inventory, Json, Run, Verdict
from muster_coordinator import baselines
from muster_coordinator.baselines import Baselines
from muster_coordinator.shares import Shares

PRODUCT = "bf16 8x8x8 seed 1"
RUNS = 6


def gemm(worse: Worse = Worse.LOWER) -> CheckInfo:
    return CheckInfo(
        name="gemm",
        summary="",
        scope=Scope.NODE,
        needs=Needs.NOTHING,
        cadence_s=None,
        timeout_s=1.0,
        objective=None,
        params={},
        compared={"tflops": worse},
    )


class Compared:
    """A fleet that is compared, with all that was ever held against any node."""

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
        worse: Worse = Worse.LOWER,
        **facts: Any,
    ) -> None:
        self._now += 1.0
        devices = tuple(Device(index=it, uuid=f"{node}-{it}", model="H200") for it in range(announced))
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
        compared = self.baselines.observe(
            run, gemm(worse).compared, Inventory(devices=devices), self._now, alike=self._nodes
        )
        self.held.update(compared.held)
        self.ever |= self.accused


def lie(lots: random.Random) -> dict[str, Any]:
    """Values, results and an inventory of one that lies, by lot."""
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
@pytest.mark.parametrize("seed", range(4))
def test_a_twentieth_that_lies_accuses_nobody(seed: int, nodes: int, devices: int, *, liars_first: bool) -> None:
    """With thousands of devices, any value and any result, though they are the first and agree with each other."""
    lots = random.Random(seed)
    names = [f"n{it}" for it in range(nodes)]
    liars = set(lots.sample(names, max(1, nodes // 20)))
    told = lie(lots)
    fleet = Compared(nodes)
    for _ in range(RUNS):
        for name in sorted(names, key=lambda it: (it in liars) is not liars_first):
            if name in liars:
                fleet.measure(name, **told)
            else:
                values = [lots.gauss(700.0, 7.0) for _ in range(devices)]
                fleet.measure(name, values, ["good"] * devices, announced=devices)
    assert fleet.ever <= liars
    worst = max(names, key=lambda it: it not in liars)
    for _ in range(3):
        fleet.measure(worst, [500.0] * devices, ["bad"] * devices, announced=devices)
    assert worst in fleet.accused, "nor do they hide one that is bad"


def test_one_node_is_not_the_fleet() -> None:
    """Of two nodes, the first of which has hundreds of devices, nothing is normal."""
    fleet = Compared(2)
    for _ in range(RUNS):
        fleet.measure("liar", [1400.0] * 100, ["evil"] * 100, announced=100)
        fleet.measure("honest", [700.0], ["good"], announced=1)
    assert fleet.ever == set()


def test_what_was_not_announced_counts_for_nothing() -> None:
    """Devices that a node does not have, where it has said which it has."""
    fleet = Compared(2)
    for _ in range(RUNS):
        fleet.measure("liar", [1400.0] * 50, ["evil"] * 50, announced=2)
    assert [view.devices for view in fleet.baselines.views()] == [2]


def test_made_up_facts_push_no_real_baseline_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many of them one node makes up; what most nodes measure stays."""
    monkeypatch.setattr(baselines, "MAX_BASELINES", 20)
    fleet = Compared(13)
    for _ in range(RUNS):
        for it in range(12):
            fleet.measure(f"n{it}", [700.0], ["good"], announced=1)
    real = fleet.baselines.views()[0]
    for it in range(100):
        fleet.measure("liar", [700.0], ["good"], announced=1, gpu_model=f"made up {it}", models=[f"made up {it}"])
    assert real in fleet.baselines.views()
    assert len(fleet.baselines) == 20


@pytest.mark.parametrize(
    ("sizes", "each"),
    [([], 1), ([8], 8), ([1, 64], 1), ([8, 8, 1000], 8), ([8, 8, 1], 8), ([4, 4, 8, 8], 4)],
)
def test_a_node_counts_with_as_many_devices_as_half_of_all_have(sizes: list[int], each: int) -> None:
    """Whatever order they come in; and it says when that changes."""
    shares = Shares()
    changes = [shares.replace(0, size) for size in sizes]
    assert shares.each == each
    assert changes[:1] == [size > 1 for size in sizes[:1]]
    for size in sizes:
        shares.replace(size, 0)
    assert shares.each == 1
