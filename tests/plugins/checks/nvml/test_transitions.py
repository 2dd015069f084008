"""Signals of the check `nvml` that need several looks: from healthy to faulty and back, over the real pynvml."""

from typing import Any

BUSY = {"utilisation_0": 100, "throttle_0": 0, "clock_0": 1980, "pcie_generation_0": 5}

TRANSITIONS = [
    ({}, {"ecc_0": 1}, "ecc_uncorrected"),
    ({}, {"remap_pending_0": 1}, "row_remap_pending"),
    ({}, {"remap_failed_0": 1}, "row_remap_failed"),
    ({}, {"temperature_0": 89}, "too_hot"),
    ({}, {"memory_temperature_0": 95}, "memory_too_hot"),
    ({}, {"throttle_0": 0x40}, "throttled"),
    ({}, {"link_down_0": 3}, "nvlink_inactive"),
    ({}, {"lost": 0}, "device_lost"),
    ({}, {"memory_used_0": 20 << 30}, "memory_leaked"),
    (BUSY, {**BUSY, "clock_0": 900}, "clock_low"),
    (BUSY, {**BUSY, "pcie_generation_0": 3}, "pcie_slow"),
    (BUSY, {**BUSY, "pcie_width_0": 8}, "pcie_slow"),
]

NO_FAULTS: list[dict[str, Any]] = [
    {"clock_0": 900},
    {**BUSY, "clock_0": 900, "throttle_0": 0x4},
    {**BUSY, "clock_0": 900, "throttle_0": 0x2},
    {**BUSY, "clock_0": 900, "unsupported": "nvmlDeviceGetCurrentClocksThrottleReasons"},
    {"pcie_generation_0": 1, "pcie_width_0": 1},
    {"memory_used_0": 20 << 30, "process_0": 4711},
    {"memory_used_0": 20 << 30, "utilisation_0": 1},
    {"memory_used_0": 20 << 30, "unsupported": "nvmlDeviceGetComputeRunningProcesses_v3"},
]
"""Idle, capped or slowed on purpose; memory that somebody owns, or of which nobody knows who does."""

COUNTERS = ("ecc_correctable_0", "crc_0", "link_replays_0", "link_recoveries_0", "replays_0")


def test_a_state_is_found_while_it_lasts(stubbed_node, codes):
    """Healthy, faulty, recovered: within the few looks that a state has to last."""

    def found(state):
        stubbed_node.state(**{"devices": 2} | state)
        return [[code for code, _, _ in codes(stubbed_node.ask("nvml"))] for _ in range(3)]

    for healthy, faulty, finding in TRANSITIONS:
        assert found(healthy)[-1] == [], (finding, "before")
        assert found(faulty)[-1] == [f"nvml.{finding}"]
        assert found(healthy)[-1] == [], (finding, "after")


def test_what_only_looks_like_a_fault_is_none(stubbed_node, codes):
    """However long it lasts."""
    for state in NO_FAULTS:
        stubbed_node.state(devices=2, **state)
        found = [codes(stubbed_node.ask("nvml")) for _ in range(4)][-1]
        assert [code for code, severity, _ in found if severity != "SKIPPED"] == [], state


def test_counters_are_judged_by_how_they_rise(stubbed_node, codes):
    """A high count from before is none of ours; one that restarts after a fault neither adds to it nor heals it."""
    stubbed_node.state(devices=2, **dict.fromkeys(COUNTERS, 10**6))
    assert [codes(stubbed_node.ask("nvml")) for _ in range(2)] == [[], []]
    risen = [
        ("nvml.ecc_correctable_rate", "WARNING", 0),
        ("nvml.pcie_replays", "WARNING", 0),
        ("nvml.nvlink_crc_errors", "ERROR", 0),
        ("nvml.nvlink_replays", "ERROR", 0),
        ("nvml.nvlink_recoveries", "ERROR", 0),
    ]
    stubbed_node.state(devices=2, **dict.fromkeys(COUNTERS, 2 * 10**6))
    first = stubbed_node.ask("nvml")
    assert codes(first) == risen
    stubbed_node.state(devices=2)
    second = stubbed_node.ask("nvml")
    assert codes(second) == risen
    rates = [name for name in first["metrics"] if "_per_" in name]
    assert [first["metrics"][name] for name in rates] == [second["metrics"][name] for name in rates]


def test_counters_that_start_again_from_zero_are_no_error(stubbed_node, codes):
    """The driver was loaded again: every counter falls, and none rises."""
    stubbed_node.state(devices=2, **dict.fromkeys(COUNTERS, 10**6))
    stubbed_node.ask("nvml")
    stubbed_node.state(devices=2)
    assert [codes(stubbed_node.ask("nvml")) for _ in range(2)] == [[], []]
