"""What a reading of devices means: the judgement of `nvml` and `simulated`."""

from tests.cases import cases

from muster import Measurement, Reference
from muster.references import applicable, shipped
from muster_plugins.shared.devices.judgement import FINDS, JUDGED, UNUSABLE, judge
from muster_plugins.shared.devices.reading import NUMBERS, DeviceReading, NodeReading, StandingXid

ADDRESSES = ("0000:10:00.0", "0000:11:00.0")


def device(index=0, **states):
    return DeviceReading(index=index, model="NVIDIA H200", pci_address=ADDRESSES[index], **states)


def judged(measurement: Measurement, rows: tuple[Reference, ...] = shipped()):
    references = applicable(rows, "nvml", measurement.facts)
    return [
        (finding.code, finding.severity.value, finding.device, finding.action.value)
        for finding in judge("nvml", measurement, references)
    ]


@cases(
    ("states", "expected"),
    [
        ({}, []),
        ({"lost": True}, [("nvml.device_lost", "ERROR", 0, "REBOOT_NODE")]),
        ({"remap_pending": True}, [("nvml.row_remap_pending", "ERROR", 0, "RESET_GPU")]),
        ({"remap_failed": True}, [("nvml.row_remap_failed", "ERROR", 0, "INSPECT_HARDWARE")]),
        ({"throttled": ("power brake",)}, [("nvml.throttled", "INFO", 0, "NONE")]),
        ({"failed": {"power_w": "unknown error"}}, [("nvml.read_failed", "UNKNOWN", 0, "NONE")]),
        ({"unsupported": ("power_w", "xids")}, [("nvml.unsupported", "SKIPPED", None, "NONE")]),
        ({"xids": (StandingXid(13, 1),)}, [("nvml.xid", "INFO", 0, "CHECK_APPLICATION")]),
        ({"xids": (StandingXid(79, 2),)}, [("nvml.xid", "ERROR", 0, "REBOOT_NODE")]),
        ({"xids": (StandingXid(55555, 1),)}, [("nvml.xid", "WARNING", 0, "NONE")]),
        ({"retirement_pending": True}, [("nvml.page_retirement_pending", "ERROR", 0, "RESET_GPU")]),
        ({"known_as": "GPU-x (NVIDIA H200)"}, [("nvml.device_changed", "WARNING", 0, "NONE")]),
        ({"persistence": True, "mig": True, "processes": 3}, []),
        ({"persistence": False}, [("nvml.persistence_off", "INFO", None, "NONE")]),
        ({"links_active": 18}, []),
        ({"links_inactive": (0, 1, 2, 3)}, []),
        ({"links_active": 17, "links_inactive": (3,), "mig": True}, []),
        (
            {"links_active": 17, "links_inactive": (3,)},
            [("nvml.nvlink_inactive", "ERROR", 0, "INSPECT_HARDWARE")],
        ),
        ({"fabric": "completed"}, []),
        ({"fabric": "in progress"}, [("nvml.fabric_not_joined", "ERROR", 0, "REBOOT_NODE")]),
        (
            {"fabric": "completed", "fabric_faults": ("unhealthy route",)},
            [("nvml.fabric_unhealthy", "ERROR", 0, "INSPECT_HARDWARE")],
        ),
    ],
)
def test_what_a_device_says_becomes_findings(states, expected):
    """Each state of a device has its own finding, and a healthy device has none."""
    assert judged(NodeReading(devices=(device(**states),)).measurement()) == expected


@cases(
    ("numbers", "expected"),
    [
        ({"ecc_uncorrected_volatile": 0.0, "ecc_uncorrected_aggregate": 0.0}, []),
        ({"ecc_uncorrected_volatile": 1.0}, [("nvml.ecc_uncorrected", "ERROR", 0, "RESET_GPU")]),
        (
            {"ecc_uncorrected_volatile": 0.0, "ecc_uncorrected_aggregate": 9.0},
            [("nvml.ecc_uncorrected_before", "INFO", 0, "NONE")],
        ),
        ({"ecc_correctable_volatile": 1e9, "ecc_correctable_per_hour": 10000.0}, []),
        ({"ecc_correctable_per_hour": 10001.0}, [("nvml.ecc_correctable_rate", "WARNING", 0, "INSPECT_HARDWARE")]),
        ({"retired_pages": 15.0}, []),
        ({"retired_pages": 62.0}, [("nvml.pages_retired", "WARNING", 0, "REPLACE")]),
        ({"retired_pages": 63.0}, [("nvml.pages_retired", "ERROR", 0, "REPLACE")]),
        ({"temperature_c": 83.0, "temperature_headroom_c": 6.0}, []),
        ({"temperature_headroom_c": 4.0}, [("nvml.too_hot", "WARNING", 0, "INSPECT_HARDWARE")]),
        ({"temperature_headroom_c": 0.0}, [("nvml.too_hot", "ERROR", 0, "INSPECT_HARDWARE")]),
        ({"memory_temperature_headroom_c": 4.0}, [("nvml.memory_too_hot", "WARNING", 0, "INSPECT_HARDWARE")]),
        ({"memory_temperature_headroom_c": 0.0}, [("nvml.memory_too_hot", "ERROR", 0, "INSPECT_HARDWARE")]),
        ({"slowed_down_s": 60.0}, []),
        ({"slowed_down_s": 360.0}, [("nvml.throttled", "WARNING", 0, "INSPECT_HARDWARE")]),
        ({"slowed_down_s": 375.0}, [("nvml.throttled", "ERROR", 0, "INSPECT_HARDWARE")]),
        ({"sm_clock_share": 0.8}, []),
        ({"sm_clock_share": 0.7}, [("nvml.clock_low", "WARNING", 0, "INSPECT_HARDWARE")]),
        ({"pcie_share": 1.0}, []),
        ({"pcie_share": 0.5}, [("nvml.pcie_slow", "WARNING", 0, "INSPECT_HARDWARE")]),
        ({"nvlink_crc_errors_per_s": 99.0, "nvlink_replays_per_min": 0.9, "nvlink_recoveries_per_min": 0.9}, []),
        ({"nvlink_crc_errors_per_s": 101.0}, [("nvml.nvlink_crc_errors", "ERROR", 0, "INSPECT_HARDWARE")]),
        ({"nvlink_replays_per_min": 1.1}, [("nvml.nvlink_replays", "ERROR", 0, "INSPECT_HARDWARE")]),
        ({"nvlink_recoveries_per_min": 1.1}, [("nvml.nvlink_recoveries", "ERROR", 0, "INSPECT_HARDWARE")]),
        ({"memory_unowned_bytes": float(1 << 30)}, []),
        ({"memory_unowned_bytes": float(1 << 31)}, [("nvml.memory_leaked", "WARNING", 0, "RESET_GPU")]),
    ],
)
def test_numbers_are_held_against_references(numbers, expected):
    """Each has its own finding, up to its bound there is none, and only what is judged by a reference convicts."""
    assert judged(NodeReading(devices=(device(numbers=numbers),)).measurement()) == expected


@cases(
    ("generation", "replays", "is_found"),
    [
        (3, 0.4, False),
        (3, 0.6, True),
        (4, 0.9, False),
        (4, 1.0, True),
        (5, 1.9, False),
        (5, 2.0, True),
        (9, 99.0, False),
    ],
)
def test_replays_are_judged_by_the_generation_of_the_link(generation, replays, is_found):
    """A faster link may repeat more; of a generation that has no reference nothing is made up."""
    there = device(numbers={"pcie_replays_per_lane_min": replays}, limits={"pcie_generation_max": generation})
    found = judged(NodeReading(devices=(there,)).measurement())
    assert found == ([("nvml.pcie_replays", "WARNING", 0, "INSPECT_HARDWARE")] if is_found else [])


def test_a_slowdown_that_lasts_is_told_once():
    """As the error that it is, not as what is seen at this moment besides."""
    slow = device(throttled=("power brake",), numbers={"slowed_down_s": 400.0})
    assert judged(NodeReading(devices=(slow,)).measurement()) == [("nvml.throttled", "ERROR", 0, "INSPECT_HARDWARE")]


def test_links_that_are_all_down_are_found_where_others_of_the_model_have_some():
    """A card without a bridge has none, but its equal on the same node shows what should be."""
    dark = device(0, links_inactive=(0, 1))
    assert judged(NodeReading(devices=(dark, device(1, links_inactive=(0, 1)))).measurement()) == []
    assert judged(NodeReading(devices=(dark, device(1, links_active=2))).measurement()) == [
        ("nvml.nvlink_inactive", "ERROR", 0, "INSPECT_HARDWARE")
    ]


def test_every_metric_that_is_meant_to_be_judged_has_a_reference():
    """For some generation of PCIe at least."""
    assert set(JUDGED) <= {row.metric for row in shipped() if row.check == "nvml"}


def test_every_finding_is_explained():
    """What each code means stands in the definition of the check."""
    everything = device(
        lost=True, reset_required=True, remap_pending=True, remap_failed=True, retirement_pending=True,
        known_as="GPU-x", persistence=False, throttled=("hardware",),
        links_active=1, links_inactive=(1,), fabric="in progress", fabric_faults=("x",),
        xids=(StandingXid(79, 1),), unsupported=("x",), failed={"y": "z"},
        numbers={
            "ecc_uncorrected_volatile": 1.0, "ecc_uncorrected_aggregate": 2.0, "ecc_correctable_per_hour": 1e9,
            "retired_pages": 99.0, "temperature_headroom_c": 0.0, "memory_temperature_headroom_c": 0.0,
            "sm_clock_share": 0.1, "pcie_share": 0.1, "pcie_replays_per_lane_min": 99.0, "memory_unowned_bytes": 1e12,
            "nvlink_crc_errors_per_s": 1e9, "nvlink_replays_per_min": 1e9, "nvlink_recoveries_per_min": 1e9,
        },
        limits={"pcie_generation_max": 5},
    )  # fmt: skip
    nodes = [NodeReading(devices=(everything,), expected=expected) for expected in (0, 2)]
    nodes += [NodeReading(unusable=word) for word in UNUSABLE]
    codes = {code for node in nodes for code, *_ in judged(node.measurement())}
    assert codes == {f"nvml.{code}" for code in FINDS}


def test_a_temperature_is_judged_by_model_where_the_device_tells_no_threshold():
    """The references for a model stand in for a threshold that the device does not tell."""
    hot = DeviceReading(index=0, model="NVIDIA H100 80GB HBM3", numbers={"temperature_c": 86.0})
    assert judged(NodeReading(devices=(hot,)).measurement()) == [("nvml.too_hot", "WARNING", 0, "INSPECT_HARDWARE")]


@cases("word", UNUSABLE)
def test_an_unusable_nvml_is_unknown_and_says_why(word):
    """No driver is no evidence of a fault, but each cause has its own finding."""
    node = NodeReading(unusable=word, expected=2, on_bus=ADDRESSES)
    assert judged(node.measurement()) == [(f"nvml.{word}", "UNKNOWN", None, UNUSABLE[word].action.value)]


@cases(
    ("node", "missing"),
    [
        (NodeReading(devices=(device(),), expected=2), ["index 1"]),
        (NodeReading(devices=(device(),), expected=2, on_bus=ADDRESSES), ["0000:11:00.0"]),
        (NodeReading(devices=(device(),), expected=3, on_bus=ADDRESSES), ["0000:11:00.0", "index 2"]),
        (NodeReading(expected=1), ["index 0"]),
        (NodeReading(unusable="driver_not_loaded", expected=3, on_bus=ADDRESSES), ["index 2"]),
    ],
)
def test_a_missing_device_is_named(node, missing):
    """By the address that the bus still shows, else by the index that nothing shows."""
    measurement = node.measurement()
    (finding,) = [each for each in judge("nvml", measurement, {}) if each.code == "nvml.devices_missing"]
    assert finding.evidence["missing"] == missing
    assert all(name in finding.summary for name in missing)


@cases("word", UNUSABLE)
def test_what_could_not_be_asked_is_not_missing(word):
    """With no NVML and no GPU on the bus nothing was counted: one finding says why, and it is UNKNOWN."""
    node = NodeReading(unusable=word, expected=8)
    assert judged(node.measurement()) == [(f"nvml.{word}", "UNKNOWN", None, UNUSABLE[word].action.value)]


def test_more_devices_than_expected_is_a_warning():
    """The settings or the node are not what somebody thinks they are."""
    node = NodeReading(devices=(device(0), device(1)), expected=1)
    assert judged(node.measurement()) == [("nvml.devices_unexpected", "WARNING", None, "NONE")]


def test_one_finding_lists_all_that_is_not_supported():
    """A device that supports little must not drown the page."""
    node = NodeReading(devices=(device(0, unsupported=("power_w",)), device(1, unsupported=("xids", "power_w"))))
    (finding,) = judge("nvml", node.measurement(), {})
    assert finding.evidence["names"] == ["power_w", "xids"]


def test_a_look_at_eight_devices_is_small():
    """Ten thousand nodes send one every 15 s, so what is the same for all devices is said once."""
    uuid, unsupported = "GPU-1b2c3d4e-5f60-7182-93a4-b5c6d7e8f901", ("nvlink_crc_errors", "nvlink_replays")
    numbers = dict.fromkeys(NUMBERS, 1980.0)
    devices = [
        DeviceReading(index=index, uuid=uuid, model="NVIDIA H200", unsupported=unsupported, numbers=numbers)
        for index in range(8)
    ]
    measurement = NodeReading(devices=tuple(devices), expected=8).measurement()
    assert len(measurement.model_dump_json()) < 4096


def test_codes_begin_with_the_name_of_the_check():
    """So that simulated findings can never be mistaken for real ones."""
    node = NodeReading(devices=(device(lost=True),))
    assert [finding.code for finding in judge("simulated", node.measurement(), {})] == ["simulated.device_lost"]


def test_a_measurement_survives_json():
    """Judging can be repeated elsewhere from what was reported."""
    reading = NodeReading(
        devices=(device(xids=(StandingXid(79, 1),), numbers={"power_w": 70.0}),), expected=1, on_bus=ADDRESSES
    )
    measurement = reading.measurement()
    again = Measurement.model_validate_json(measurement.model_dump_json())
    assert judge("nvml", again, {}) == judge("nvml", measurement, {})
