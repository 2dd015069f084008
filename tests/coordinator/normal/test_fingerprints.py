"""Devices that must come to the same bits."""

import time
from typing import Any

import pytest

from muster.model import Device, Inventory, Run, Severity, Verdict
from muster_coordinator.normal.baselines import MAX_RESULTS, Baselines

PRODUCT = "bf16 8x8x8 seed 1"


def run(node: str, *bits: Any, **facts: Any) -> Run:
    known: dict[str, Any] = {
        "backend": "cuda",
        "devices": [*range(len(bits))],
        "models": ["H200"] * len(bits),
        "software": {"torch": "2"},
    }
    return Run(
        id=f"r-{node}",
        node=node,
        check="gemm",
        verdict=Verdict.PASS,
        facts={**known, "fingerprints": {PRODUCT: [*bits]}, **facts},
        started_at=1.0,
        duration_s=1.0,
    )


class Fleet:
    def __init__(self) -> None:
        self.baselines = Baselines()
        self.held: dict[str, list[Any]] = {}
        self.devices: tuple[Device, ...] = ()

    def add(self, *runs: Run) -> None:
        for one in runs:
            for (node, _), findings in self.baselines.observe(
                one, {}, Inventory(devices=self.devices), 1.0
            ).held.items():
                self.held[node] = [*findings]

    @property
    def against(self) -> dict[str, list[int | None]]:
        return {node: [finding.device for finding in found] for node, found in self.held.items() if found}


@pytest.fixture
def fleet() -> Fleet:
    """Twenty nodes of two devices that all agree."""
    made = Fleet()
    made.add(*(run(f"n{number}", "good", "good") for number in range(20)))
    return made


def test_a_run_with_thousands_of_results_takes_little_time(fleet: Fleet) -> None:
    """A node that invents results fills neither memory nor processor time."""
    before = len(fleet.baselines)
    names = {f"product {number}": ["good", "bad"] for number in range(6000)}
    begun = time.process_time()
    fleet.add(run("odd", fingerprints=names))
    fleet.add(run("odd", fingerprints=names, software={"version": "x" * 100_000}))
    assert time.process_time() - begun < 0.5
    assert len(fleet.baselines) <= before + MAX_RESULTS


def test_the_one_that_differs_is_suspected(fleet: Fleet) -> None:
    """It is named with the figures, and cleared as soon as it agrees again."""
    fleet.add(run("odd", "good", "bad"))
    assert fleet.against == {"odd": [1]}
    (finding,) = fleet.held["odd"]
    assert (finding.code, finding.severity) == ("baseline.fingerprint", Severity.ERROR)
    assert finding.evidence["alike"] == 41
    fleet.add(run("odd", "good", "good"))
    assert fleet.against == {}


def test_a_suspect_with_new_software_is_compared_again(fleet: Fleet) -> None:
    """What it computed with the old software no longer stands against it."""
    fleet.add(run("odd", "good", "bad"))
    fleet.add(run("odd", "other", "other", software={"torch": "3"}))
    assert fleet.against == {}


def test_a_device_that_is_gone_is_no_suspect(fleet: Fleet) -> None:
    """Its result went with it."""
    fleet.add(run("odd", "good", "bad"))
    fleet.devices = (Device(index=0, uuid="a", model="H200"),)
    fleet.add(run("odd", "good"))
    assert fleet.against == {}


@pytest.mark.parametrize(
    "facts",
    [
        {"software": {"torch": "3"}},
        {"models": ["H200", "H100"]},
        {"backend": "cpu"},
        {"fingerprints": {"another": ["good", "bad"]}},
        {"fingerprints": ["good", "bad"]},
        {"fingerprints": {PRODUCT: "bad"}},
        {"fingerprints": {PRODUCT: ["good", None]}},
        {"fingerprints": {PRODUCT: ["good", "x" * 1000]}},
        {"fingerprints": {PRODUCT: ["good", 3]}},
    ],
)
def test_what_cannot_be_compared_makes_no_suspect(fleet: Fleet, facts: dict[str, Any]) -> None:
    """Other software, another model, the CPU, another computation, what is no fingerprint at all."""
    fleet.add(run("odd", "good", "bad", **facts))
    assert fleet.against == {}


def test_without_a_majority_there_is_no_suspect() -> None:
    """Seven that agree are too few to suspect one, and half of all devices are no majority."""
    few = Fleet()
    few.add(*(run(f"n{number}", "good") for number in range(7)), run("odd", "bad"))
    assert few.against == {}
    split = Fleet()
    split.add(*(run(f"n{number}", "good", "bad") for number in range(20)))
    assert split.against == {}


def test_many_that_differ_have_a_common_cause(fleet: Fleet) -> None:
    """Then it is a finding of the fleet, and the earlier suspects are released."""
    fleet.add(run("odd-1", "bad", "bad"), run("odd-2", "bad", "bad"))
    assert set(fleet.against) == {"odd-1", "odd-2"}
    fleet.add(run("odd-3", "bad", "bad"))
    assert fleet.against == {}
    (finding,) = fleet.baselines.findings()
    assert finding.code == "baseline.disagreement"


def test_a_device_counts_once(fleet: Fleet) -> None:
    """However often it is measured."""
    for _ in range(50):
        fleet.add(run("odd", "bad"))
    assert fleet.against == {"odd": [0]}
    assert fleet.held["odd"][0].evidence["devices"] == 41
