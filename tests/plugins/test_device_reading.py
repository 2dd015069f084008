"""What a reading of devices means: the judgement that `nvml` and `simulated` share."""

import pytest

from muster import Measurement, Reference
from muster.references import applicable, shipped
from muster_plugins.device_reading import UNUSABLE, DeviceReading, NodeReading, judge

ADDRESSES = ("0000:10:00.0", "0000:11:00.0")


def device(index=0, **states):
    return DeviceReading(index=index, model="NVIDIA H200", pci_address=ADDRESSES[index], **states)


def judged(measurement: Measurement, rows: tuple[Reference, ...] = shipped()):
    references = applicable(rows, "nvml", measurement.facts)
    return [
        (finding.code, finding.severity.value, finding.device, finding.action.value)
        for finding in judge("nvml", measurement, references)
    ]


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ({}, []),
        ({"lost": True}, [("nvml.device_lost", "ERROR", 0, "REBOOT_NODE")]),
        ({"remap_pending": True}, [("nvml.row_remap_pending", "ERROR", 0, "RESET_GPU")]),
        ({"remap_failed": True}, [("nvml.row_remap_failed", "ERROR", 0, "INSPECT_HARDWARE")]),
        ({"throttled": ("power brake",)}, [("nvml.throttled", "WARNING", 0, "INSPECT_HARDWARE")]),
        ({"failed": {"power_w": "unknown error"}}, [("nvml.read_failed", "UNKNOWN", 0, "NONE")]),
        ({"unsupported": ("power_w", "xids")}, [("nvml.unsupported", "SKIPPED", None, "NONE")]),
        ({"xids": (13,)}, [("nvml.xid", "INFO", 0, "CHECK_APPLICATION")]),
        ({"xids": (79, 79)}, [("nvml.xid", "ERROR", 0, "REBOOT_NODE")]),
        ({"xids": (555,)}, [("nvml.xid", "WARNING", 0, "NONE")]),
        ({"numbers": {"ecc_uncorrected_volatile": 0.0, "ecc_uncorrected_aggregate": 9.0}}, []),
        ({"numbers": {"ecc_uncorrected_volatile": 1.0}}, [("nvml.ecc_uncorrected", "ERROR", 0, "RESET_GPU")]),
        ({"numbers": {"temperature_c": 83.0, "temperature_headroom_c": 6.0}}, []),
        ({"numbers": {"temperature_headroom_c": 4.0}}, [("nvml.too_hot", "WARNING", 0, "INSPECT_HARDWARE")]),
        ({"numbers": {"temperature_headroom_c": 0.0}}, [("nvml.too_hot", "ERROR", 0, "INSPECT_HARDWARE")]),
    ],
)
def test_what_a_device_says_becomes_findings(states, expected):
    """Each state of a device has its own finding, and a healthy device has none."""
    assert judged(NodeReading(devices=(device(**states),)).measurement()) == expected


def test_a_temperature_is_judged_by_model_where_the_device_tells_no_threshold():
    """The references for a model stand in for a threshold that the device does not tell."""
    hot = DeviceReading(index=0, model="NVIDIA H100 80GB HBM3", numbers={"temperature_c": 86.0})
    assert judged(NodeReading(devices=(hot,)).measurement()) == [("nvml.too_hot", "WARNING", 0, "INSPECT_HARDWARE")]


@pytest.mark.parametrize("word", UNUSABLE)
def test_an_unusable_nvml_is_unknown_and_says_why(word):
    """No driver is no evidence of a fault, but each cause has its own finding."""
    node = NodeReading(unusable=word, expected=2, on_bus=ADDRESSES)
    assert judged(node.measurement()) == [(f"nvml.{word}", "UNKNOWN", None, UNUSABLE[word].action.value)]


@pytest.mark.parametrize(
    ("node", "missing"),
    [
        (NodeReading(devices=(device(),), expected=2), ["index 1"]),
        (NodeReading(devices=(device(),), expected=2, on_bus=ADDRESSES), ["0000:11:00.0"]),
        (NodeReading(devices=(device(),), expected=3, on_bus=ADDRESSES), ["0000:11:00.0", "index 2"]),
        (NodeReading(expected=1), ["index 0"]),
        (NodeReading(unusable="library_missing", expected=3, on_bus=ADDRESSES), ["index 2"]),
    ],
)
def test_a_missing_device_is_named(node, missing):
    """By the address that the bus still shows, else by the index that nothing shows."""
    measurement = node.measurement()
    (finding,) = [each for each in judge("nvml", measurement, {}) if each.code == "nvml.devices_missing"]
    assert finding.evidence["missing"] == missing
    assert all(name in finding.summary for name in missing)


def test_more_devices_than_expected_is_a_warning():
    """The settings or the node are not what somebody thinks they are."""
    node = NodeReading(devices=(device(0), device(1)), expected=1)
    assert judged(node.measurement()) == [("nvml.devices_unexpected", "WARNING", None, "NONE")]


def test_one_finding_lists_all_that_is_not_supported():
    """A device that supports little must not drown the page."""
    node = NodeReading(devices=(device(0, unsupported=("power_w",)), device(1, unsupported=("xids", "power_w"))))
    (finding,) = judge("nvml", node.measurement(), {})
    assert finding.evidence["names"] == ["power_w", "xids"]


def test_codes_begin_with_the_name_of_the_check():
    """So that simulated findings can never be mistaken for real ones."""
    node = NodeReading(devices=(device(lost=True),))
    assert [finding.code for finding in judge("simulated", node.measurement(), {})] == ["simulated.device_lost"]


def test_a_measurement_survives_json():
    """Judging can be repeated elsewhere from what was reported."""
    reading = NodeReading(devices=(device(xids=(79,), numbers={"power_w": 70.0}),), expected=1, on_bus=ADDRESSES)
    measurement = reading.measurement()
    again = Measurement.model_validate_json(measurement.model_dump_json())
    assert judge("nvml", again, {}) == judge("nvml", measurement, {})
