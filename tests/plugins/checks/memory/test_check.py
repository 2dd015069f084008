"""The check `memory`: its judgement, its parameters, and what it measures on the CPU."""

import os

import pytest
from tests.cases import cases

from muster import Measurement, Reference
from muster.check import valid_params
from muster.config import Config, Settings
from muster.errors import Refused
from muster.model import Json
from muster_plugins.checks.memory.bandwidth import cpus_next_to
from muster_plugins.checks.memory.check import judge, muster_checks
from muster_plugins.checks.memory.pairs import of_each

(MEMORY,) = muster_checks(Config(Settings()))

FACTS: Json = {"backend": "cuda", "simulated": False, "devices": [0, 1, 2], "missing": []}


def at_least(metric, fail_below, warn_below):
    return Reference(check="memory", metric=metric, fail_below=fail_below, warn_below=warn_below, source="a test")


REFERENCES = {
    "copy_gbps": at_least("copy_gbps", 2000, 2500),
    "to_host_gbps": at_least("to_host_gbps", 48, 50),
    "peer_gbps": at_least("peer_gbps", 300, 350),
    "host_copy_gbps": at_least("host_copy_gbps", 100, 150),
}

Matrix = list[list[float | None]]

FAST: Matrix = [[None, 400.0, 400.0], [400.0, None, 400.0], [400.0, 400.0, None]]

ONE_SLOW_DEVICE: Matrix = [[None, 400.0, 100.0], [400.0, None, 100.0], [100.0, 100.0, None]]

ONE_SLOW_PAIR: Matrix = [[None, 320.0, 400.0, 400.0], [200.0, None, 400.0, 400.0], [400.0] * 4, [400.0] * 4]

TWO_SLOW_DEVICES: Matrix = [[None, 100.0], [100.0, None]]


@cases(
    ("metrics", "facts", "expected"),
    [
        ({"copy_gbps": [2900.0, 2900.0, 2900.0], "wrong_words": [0.0, 0.0, 0.0]}, {}, []),
        ({"wrong_words": [0.0, 3.0, None]}, {}, [("memory.corrupt", "ERROR", 1, "REPLACE")]),
        ({"copy_gbps": [2900.0, 2900.0, 1000.0]}, {}, [("memory.slow", "ERROR", 2, "INSPECT_HARDWARE")]),
        ({"triad_gbps": [1.0, 1.0, 1.0]}, {}, []),
        ({"to_host_gbps": [49.0, 55.0, 55.0]}, {}, [("memory.transfer_slow", "WARNING", 0, "INSPECT_HARDWARE")]),
        ({"host_copy_gbps": 99.0}, {}, [("memory.host_slow", "ERROR", None, "NONE")]),
        ({}, {"devices": [], "missing": [0]}, [("memory.not_asked", "UNKNOWN", None, "NONE")]),
        (
            {},
            {"devices": [0, 2], "missing": [1]},
            [("memory.devices_missing", "ERROR", None, "INSPECT_HARDWARE")],
        ),
        (
            {},
            {"failed": [{"device": 1, "reason": "out_of_memory", "detail": "CUDA out of memory", "evidence": {}}]},
            [("memory.out_of_memory", "UNKNOWN", 1, "NONE")],
        ),
        ({}, {"without_peer_access": [[0, 1], [1, 0]]}, [("memory.no_peer_access", "INFO", None, "NONE")]),
    ],
)
def test_judgement(metrics, facts, expected):
    """Mismatches convict a device, references judge speeds, and memory that another program holds is no fault."""
    findings = judge(Measurement(metrics=metrics, facts=FACTS | facts), REFERENCES)
    assert [(each.code, each.severity, each.device, each.action) for each in findings] == expected
    assert {finding.code for finding in findings} <= MEMORY.finds.keys()


@cases(
    ("matrix", "expected"),
    [
        (FAST, []),
        (ONE_SLOW_DEVICE, [("memory.peer_slow", "ERROR", 2)]),
        (ONE_SLOW_PAIR, [("memory.pair_slow", "ERROR", None)]),
        (TWO_SLOW_DEVICES, [("memory.pair_slow", "ERROR", None)]),
        ([[None, None], [None, None]], []),
    ],
)
def test_a_slow_link_is_told_from_a_slow_device(matrix, expected):
    """A device that is slow with most others is named; otherwise one finding names the pairs."""
    facts: Json = {**FACTS, "devices": [*range(len(matrix))], "peer_matrix_gbps": matrix}
    measurement = Measurement(metrics={"peer_gbps": of_each(matrix)}, facts=facts)
    findings = judge(measurement, REFERENCES)
    assert [(each.code, each.severity, each.device) for each in findings] == expected
    assert {finding.code for finding in findings} <= MEMORY.finds.keys()


def test_slow_pairs_are_listed_by_their_devices():
    """From which to which, in device indices."""
    facts: Json = {**FACTS, "devices": [0, 1, 4, 5], "peer_matrix_gbps": [[*row] for row in ONE_SLOW_PAIR]}
    (finding,) = judge(Measurement(metrics={"peer_gbps": of_each(ONE_SLOW_PAIR)}, facts=facts), REFERENCES)
    assert finding.evidence["pairs"] == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"share": 1}, "parameter of memory 'share': must be less than or equal to 0.95 (got 1)"),
        ({"size_bytes": 10}, "parameter of memory 'size_bytes': must be greater than or equal to 65536"),
        ({"parts": []}, "parameter of memory 'parts': must have at least 1 item"),
        ({"patterns": ["stripes"]}, "parameter of memory 'patterns.0': must be 'walking_ones'"),
    ],
)
def test_wrong_parameters_are_refused(params, message):
    """With what would be right."""
    with pytest.raises(Refused) as refused:
        valid_params(MEMORY, params)
    assert message in str(refused.value)


def test_everything_is_measured_for_every_simulated_device(torch_child, codes, simulated_node):
    """In device order; the host only where it is asked for."""
    answer = torch_child.ask("memory", simulated_node(devices=3))
    assert codes(answer) == []
    for metric in ("copy_gbps", "triad_gbps", "to_device_gbps", "to_host_gbps", "peer_gbps"):
        assert len(answer["metrics"][metric]) == 3
        assert min(answer["metrics"][metric]) > 0
    assert answer["metrics"]["tested_bytes"] == [2 << 20] * 3
    assert answer["metrics"]["wrong_words"] == [0] * 3
    matrix = answer["facts"]["peer_matrix_gbps"]
    assert [[speed is None for speed in row] for row in matrix] == [[row == to for to in range(3)] for row in range(3)]
    assert "host_copy_gbps" not in answer["metrics"]


def test_only_what_is_asked_for_is_measured(torch_child, codes):
    """The host's own memory on request, on a machine without devices too."""
    answer = torch_child.ask("memory", params={"device": "cpu", "parts": ["host"]})
    assert codes(answer) == []
    assert set(answer["metrics"]) == {"host_copy_gbps", "host_triad_gbps"}
    assert answer["metrics"]["host_copy_gbps"] > 0


def test_memory_that_forgets_is_found_with_its_address(torch_child, codes, simulated_node):
    """Only the faulty device is named, with written and read values of a few mismatches."""
    node = simulated_node(devices=2, faults=[{"kind": "corrupt", "device": 1}])
    answer = torch_child.ask("memory", node, params={"parts": ["pattern"], "rounds": 3})
    assert codes(answer) == [("memory.corrupt", "ERROR", 1)]
    assert answer["metrics"]["wrong_words"] == [0, 2 * 4 * 3]  # one in each block, for each pattern in each round
    mismatches = answer["findings"][0]["evidence"]["mismatches"]
    assert len(mismatches) == 4
    first, second = mismatches[0], mismatches[1]
    assert int(first["found"], 16) == int(first["expected"], 16) + 1
    assert (first["pattern"], first["offset_bytes"], second["offset_bytes"]) == ("walking_ones", 0, 1 << 20)
    assert int(first["address"], 16) > 0


@pytest.mark.parametrize("pattern", ["walking_ones", "walking_zeros", "address", "random"])
def test_each_pattern_finds_a_mismatch(torch_child, codes, simulated_node, pattern):
    """Each pattern reports its own mismatches."""
    node = simulated_node(faults=[{"kind": "corrupt"}])
    answer = torch_child.ask("memory", node, params={"parts": ["pattern"], "patterns": [pattern]})
    assert codes(answer) == [("memory.corrupt", "ERROR", 0)]
    assert {each["pattern"] for each in answer["findings"][0]["evidence"]["mismatches"]} == {pattern}


def test_a_device_that_vanishes_is_named_once_and_the_others_are_measured(torch_child, codes, simulated_node):
    """Whatever part of the check it fails in."""
    node = simulated_node(devices=2, faults=[{"kind": "lost", "device": 1}])
    answer = torch_child.ask("memory", node)
    assert codes(answer) == [("memory.device_failed", "UNKNOWN", 1)]
    assert answer["findings"][0]["evidence"]["times"] == 4
    for metric in ("copy_gbps", "wrong_words", "to_device_gbps"):
        measured, lost = answer["metrics"][metric]
        assert measured is not None
        assert lost is None


def test_buffers_that_do_not_fit_are_no_fault_of_the_device(torch_child, codes):
    """Three buffers of 1 TiB are more than this machine has free; the finding says what would fit."""
    answer = torch_child.ask("memory", params={"device": "cpu", "parts": ["bandwidth"], "size_bytes": 1 << 40})
    assert codes(answer) == [("memory.out_of_memory", "UNKNOWN", None)]
    (finding,) = answer["findings"]
    evidence = finding["evidence"]
    assert evidence["needed_bytes"] == 3 << 40 > evidence["free_bytes"] > 0
    assert f"size_bytes={evidence['free_bytes'] // 3} fits" in finding["summary"]


def test_host_memory_next_to_the_device_is_used_where_sysfs_tells(torch_child, simulated_node, tmp_path):
    """Otherwise the figures prove nothing, and a fact says so."""
    device = tmp_path / "0000:10:00.0"
    device.mkdir()
    (device / "local_cpulist").write_text(f"{min(os.sched_getaffinity(0))}\n", encoding="ascii")
    node = simulated_node()
    node["plugins"]["memory"] = {"pci_root": str(tmp_path)}
    params = {"parts": ["transfers"]}
    assert torch_child.ask("memory", node, params=params)["facts"]["host_memory_near"] is True
    (device / "local_cpulist").unlink()
    assert torch_child.ask("memory", node, params=params)["facts"]["host_memory_near"] is False


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0-2,8\n", {0, 1, 2, 8}), ("5", {5}), ("\n", set()), ("0-", set()), ("many", set()), (None, set())],
)
def test_cpus_next_to_a_device(tmp_path, text, cpus):
    """As the kernel writes lists of them; nothing where the file is missing, empty or garbage."""
    if text is not None:
        (tmp_path / "0000:10:00.0").mkdir()
        (tmp_path / "0000:10:00.0" / "local_cpulist").write_text(text, encoding="ascii")
    assert cpus_next_to("0000:10:00.0", tmp_path) == cpus
    assert cpus_next_to(None, tmp_path) == set()
