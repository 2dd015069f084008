"""Which devices a check has: whole ones only, those that are not hidden from it, and for a rank its own."""

from pathlib import Path

import pytest

from muster import Device, Measurement, Skip
from muster_plugins.shared.metric_judgement import hidden_devices, missing_devices
from muster_plugins.shared.torch_device import CPU, Place, facts, place_of_rank, whole_devices


class Node:
    """As much of a run's context as decides about devices: an inventory of four."""

    node = "n1"
    scratch = Path()
    timeout_s = 60.0
    machine_type = None

    def __init__(self, expected_gpus: int | None = None) -> None:
        self.devices = tuple(Device(index=index, uuid=f"GPU-{index}", model="H100") for index in range(4))
        self.expected_gpus = expected_gpus

    def progress(self, text: str) -> None:
        raise AssertionError

    def rendezvous(self):
        raise AssertionError


def shown(*indices):
    return [Place(index, f"cuda:{number}", "H100") for number, index in enumerate(indices)]


@pytest.mark.parametrize(
    ("visible", "node", "found", "missing", "hidden", "code"),
    [
        (None, Node(), shown(0, 1, 2, 3), [], [], None),
        (None, Node(), shown(0, 1, 3), [2], [], "devices_missing"),
        (None, Node(expected_gpus=5), shown(0, 1, 2, 3), [4], [], "devices_missing"),
        ("0,1,3", Node(), shown(0, 1, 3), [], [2], "devices_hidden"),
        ("3", Node(expected_gpus=8), shown(3), [], [0, 1, 2, 4, 5, 6, 7], "devices_hidden"),
        (None, Node(), [], [0, 1, 2, 3], [], "not_asked"),
        (None, Node(), [CPU, CPU], [0, 1, 2, 3], [], "not_asked"),
        ("0", Node(), [], [0, 1, 2, 3], [], "not_asked"),
    ],
)
def test_devices_that_are_hidden_are_not_missing(monkeypatch, visible, node, found, missing, hidden, code):  # noqa: PLR0917  columns of a table
    """Devices are missing only beside others that CUDA shows; CUDA_VISIBLE_DEVICES says nothing about a device."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    told = facts(node, found, "auto")
    assert (told["missing"], told["hidden"]) == (missing, hidden)
    measurement = Measurement(facts=told)
    found_of = [*missing_devices("gemm", measurement), *hidden_devices("gemm", measurement)]
    assert [finding.code for finding in found_of] == ([f"gemm.{code}"] if code else [])


def test_the_cpu_on_purpose_misses_nothing():
    """It is not in place of the devices."""
    told = facts(Node(), [CPU], "cpu")
    assert (told["missing"], told["hidden"]) == ([], [])


def test_a_rank_has_its_device():
    """By its number on the node, or the only one that its job shows it; there is none to share."""
    two = shown(0, 1)
    assert [place_of_rank(two, rank) for rank in range(2)] == two
    assert place_of_rank(two[:1], 5) == two[0]
    with pytest.raises(RuntimeError, match="local rank 2 has no device"):
        place_of_rank(two, 2)


def test_whole_devices_are_taken_as_they_are():
    """In their order."""
    found = shown(0, 1)
    assert whole_devices(found) == found


def test_a_part_of_a_device_is_not_measured():
    """Its speed is not the device's, and CUDA hides everything else."""
    with pytest.raises(Skip, match="partitioned"):
        whole_devices([Place(0, "cuda:0", "NVIDIA A100-SXM4-40GB MIG 1g.5gb")])
