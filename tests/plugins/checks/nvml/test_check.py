"""The check `nvml` over the real pynvml, with a stub for NVIDIA's library."""

from typing import Any

import pytest

HEALTHY: dict[str, Any] = {"devices": 2}

SIGNALS: list[tuple[dict[str, Any], list[tuple[str, str, int | None]]]] = [
    ({"ecc_1": 3}, [("nvml.ecc_uncorrected", "ERROR", 1)]),
    ({"remap_pending_0": 1}, [("nvml.row_remap_pending", "ERROR", 0)]),
    ({"remap_failed_1": 1}, [("nvml.row_remap_failed", "ERROR", 1)]),
    ({"temperature_1": 86}, [("nvml.too_hot", "WARNING", 1)]),
    ({"temperature_1": 89}, [("nvml.too_hot", "ERROR", 1)]),
    ({"throttle_0": 0x80}, [("nvml.throttled", "INFO", 0)]),
    ({"throttle_0": 0x4}, []),
    ({"lost": 1}, [("nvml.device_lost", "ERROR", 1)]),
    ({"ecc_aggregate_1": 3}, [("nvml.ecc_uncorrected_before", "INFO", 1)]),
    ({"retired_0": 40, "retired_double_0": 23}, [("nvml.pages_retired", "ERROR", 0)]),
    ({"retirement_pending_1": 1}, [("nvml.page_retirement_pending", "ERROR", 1)]),
    ({"memory_temperature_0": 91}, [("nvml.memory_too_hot", "WARNING", 0)]),
    ({"memory_temperature_0": 95}, [("nvml.memory_too_hot", "ERROR", 0)]),
    ({"link_down_1": 17}, [("nvml.nvlink_inactive", "ERROR", 1)]),
    ({"links": 0}, [("nvml.unsupported", "SKIPPED", None)]),
    ({"fabric_state": 1}, [("nvml.fabric_not_joined", "ERROR", 0), ("nvml.fabric_not_joined", "ERROR", 1)]),
    ({"fabric_status": 999}, [("nvml.fabric_unhealthy", "ERROR", 0), ("nvml.fabric_unhealthy", "ERROR", 1)]),
    ({"fabric_state": 0}, [("nvml.unsupported", "SKIPPED", None)]),
    ({"persistence_1": 0}, [("nvml.persistence_off", "INFO", None)]),
    ({"unsupported": "nvmlDeviceGetFieldValues"}, [("nvml.unsupported", "SKIPPED", None)]),
    ({"unsupported": "nvmlDeviceGetMaxClockInfo"}, [("nvml.unsupported", "SKIPPED", None)]),
    ({"unsupported_field": 82}, [("nvml.unsupported", "SKIPPED", None)]),
    ({"wait_says": 15}, []),
    ({"wait_says": 999}, [("nvml.read_failed", "UNKNOWN", 0), ("nvml.read_failed", "UNKNOWN", 1)]),
    (
        {"failing": "nvmlDeviceGetMaxPcieLinkWidth"},
        [("nvml.read_failed", "UNKNOWN", 0), ("nvml.read_failed", "UNKNOWN", 1)],
    ),
    (
        {"failing": "nvmlDeviceGetUUID"},
        [("nvml.read_failed", "UNKNOWN", 0), ("nvml.read_failed", "UNKNOWN", 1)],
    ),
    (
        {"reset_required": "nvmlDeviceGetTemperature"},
        [("nvml.reset_required", "ERROR", 0), ("nvml.reset_required", "ERROR", 1)],
    ),
    (
        {"reset_required": "nvmlDeviceGetUUID"},
        [("nvml.reset_required", "ERROR", 0), ("nvml.reset_required", "ERROR", 1)],
    ),
    ({"unsupported": "nvmlDeviceGetPowerUsage"}, [("nvml.unsupported", "SKIPPED", None)]),
    ({"unknown_question": "nvmlDeviceGetTemperatureThreshold"}, [("nvml.unsupported", "SKIPPED", None)]),
    ({"unsupported": "nvmlDeviceGetRemappedRows"}, [("nvml.unsupported", "SKIPPED", None)]),
    ({"events_unsupported": 1}, [("nvml.unsupported", "SKIPPED", None)]),
    (
        {"failing": "nvmlDeviceGetTemperature"},
        [("nvml.read_failed", "UNKNOWN", 0), ("nvml.read_failed", "UNKNOWN", 1)],
    ),
    ({"init": 9}, [("nvml.driver_not_loaded", "UNKNOWN", None)]),
    ({"init": 18}, [("nvml.version_mismatch", "UNKNOWN", None)]),
    ({"init": 4}, [("nvml.no_permission", "UNKNOWN", None)]),
    ({"init": 999}, [("nvml.failed", "UNKNOWN", None)]),
]


def test_healthy_devices_are_read(stubbed_node, codes):
    """Numbers stand in device order, identities in the facts, and nothing is found."""
    answer = stubbed_node.ask("nvml", expected_gpus=2)
    assert codes(answer) == []
    assert answer["metrics"]["power_w"] == [70.5, 70.5]
    assert answer["metrics"]["temperature_headroom_c"] == [48.0, 48.0]
    assert [device["pci_address"] for device in answer["facts"]["devices"]] == ["0000:10:00.0", "0000:11:00.0"]
    assert answer["facts"]["software"] == {"nvidia_driver": "570.86.15", "nvml": "12.570.86.15"}


@pytest.fixture
def load_driver(stubbed_node):
    """Loads the driver again and lets it say these values: what is asked only once is asked again."""

    def load(**values):
        stubbed_node.state(broken=9)
        stubbed_node.ask("nvml", expected_gpus=2)
        stubbed_node.state(**values)

    return load


def test_what_the_driver_says_is_found(stubbed_node, load_driver, codes):
    """Every signal goes through the real calls, and each has its own finding."""
    stubbed_node.plug("0000:10:00.0", "0000:11:00.0")
    for state, expected in SIGNALS:
        load_driver(**HEALTHY | state)
        assert codes(stubbed_node.ask("nvml", expected_gpus=2)) == expected, state


def test_a_lost_device_is_named_from_the_inventory(stubbed_node):
    """The device cannot report its address, so the facts have the inventory's data about it."""
    known = stubbed_node.ask("inventory")["devices"]
    stubbed_node.state(devices=2, lost=1)
    answer = stubbed_node.ask("nvml", devices=known)
    assert [device["uuid"] for device in answer["facts"]["devices"]] == ["GPU-stub-0", "GPU-stub-1"]


def test_what_is_not_supported_is_named(stubbed_node):
    """Each by the name under which it would be reported."""
    stubbed_node.state(devices=2, unsupported_field=82, links=0)
    (finding,) = stubbed_node.ask("nvml")["findings"]
    assert finding["evidence"]["names"] == ["memory_temperature_c", "nvlinks"]


def test_the_health_of_the_fabric_is_read_bit_by_bit(stubbed_node):
    """Two bits for each part: not supported, true or false; four for the configuration."""
    for health, words in (
        (0x000, []),
        (0x1AA, []),
        (0x1A9, ["degraded bandwidth"]),
        (0x1A6, ["recovery of a route under way"]),
        (0x19A, ["unhealthy route"]),
        (0x16A, ["recovery from an access timeout under way"]),
        (0x299, ["degraded bandwidth", "unhealthy route", "incorrect configuration (2)"]),
    ):
        stubbed_node.state(devices=1, fabric_health=health)
        answer = stubbed_node.ask("nvml")
        assert answer["facts"]["devices"][0].get("fabric_faults", []) == words, hex(health)


def test_states_that_are_no_fault_stand_in_the_facts(stubbed_node, codes):
    """MIG mode, processes, links and the fabric are in the facts."""
    stubbed_node.state(devices=1, mig_0=1, process_0=4711)
    answer = stubbed_node.ask("nvml")
    assert codes(answer) == []
    known = {"mig": True, "processes": 1, "links_active": 18, "fabric": "completed", "persistence": True}
    assert answer["facts"]["devices"][0].items() >= known.items()


def test_a_device_that_the_inventory_does_not_know_is_named(stubbed_node):
    """Somebody has exchanged or reordered devices while the agent ran."""
    known = stubbed_node.ask("inventory")["devices"]
    stubbed_node.state(devices=2, uuid_1="GPU-new")
    (finding,) = stubbed_node.ask("nvml", devices=known)["findings"]
    assert (finding["code"], finding["severity"], finding["device"]) == ("nvml.device_changed", "WARNING", 1)
    before = "GPU-stub-1 (NVIDIA H100 80GB HBM3)"
    assert finding["summary"] == f"the GPU is GPU-new; the inventory has {before} at this index"


def test_xids_stand_for_their_window(stubbed_node, codes):
    """Readings without XIDs do not clear a broken GPU; an application's XID ends after a while."""
    assert codes(stubbed_node.ask("nvml")) == []
    stubbed_node.state(devices=2, xids="1:79,0:13,1:79")
    both = [("nvml.xid", "INFO", 0), ("nvml.xid", "ERROR", 1)]
    assert codes(stubbed_node.ask("nvml")) == both
    answer = stubbed_node.ask("nvml")
    assert codes(answer) == both
    assert "2 times" in answer["findings"][1]["summary"]
    brief = {"nvml": {"pci_root": "/nowhere", "xid_window_s": 1e-6}}
    assert codes(stubbed_node.ask("nvml", plugins=brief)) == both[1:]


def test_a_fatal_xid_stands_until_the_driver_is_loaded_again(stubbed_node, codes):
    """Nothing else repairs the fault that it reports."""
    stubbed_node.ask("nvml")
    stubbed_node.state(devices=2, xids="1:79")
    assert codes(stubbed_node.ask("nvml")) == [("nvml.xid", "ERROR", 1)]
    stubbed_node.state(devices=2, broken=9)
    assert codes(stubbed_node.ask("nvml", expected_gpus=2))[0] == ("nvml.driver_not_loaded", "UNKNOWN", None)
    stubbed_node.state(devices=2)
    assert codes(stubbed_node.ask("nvml")) == []


@pytest.mark.parametrize("gone", [{"devices": 2, "lost": 1}, {"devices": 1}])
def test_an_xid_of_a_device_that_is_gone_still_counts(stubbed_node, codes, gone):
    """A GPU that fell off the bus sends its XID without an index, whether or not the driver still counts it."""
    known = stubbed_node.ask("inventory")["devices"]
    stubbed_node.ask("nvml")
    stubbed_node.state(**gone, xids="1:79")
    found = codes(stubbed_node.ask("nvml", devices=known))
    assert [(code, severity) for code, severity, _ in found if code == "nvml.xid"] == [("nvml.xid", "ERROR")]
    assert len(found) == 2


def test_a_driver_that_goes_and_comes_back_is_read_again(stubbed_node, codes):
    """The next reading opens a new session after the driver was unloaded."""
    stubbed_node.plug("0000:10:00.0", "0000:11:00.0")
    assert codes(stubbed_node.ask("nvml", expected_gpus=2)) == []
    stubbed_node.state(devices=2, broken=9)
    assert codes(stubbed_node.ask("nvml", expected_gpus=2)) == [("nvml.driver_not_loaded", "UNKNOWN", None)]
    stubbed_node.state(**HEALTHY)
    assert codes(stubbed_node.ask("nvml", expected_gpus=2)) == []


def test_a_device_that_only_the_bus_shows_is_named_by_its_address(stubbed_node):
    """The operator learns which one to look at."""
    stubbed_node.plug("0000:10:00.0", "0000:11:00.0", "0000:9a:00.0")
    (finding,) = stubbed_node.ask("nvml", expected_gpus=3)["findings"]
    assert (finding["code"], finding["severity"]) == ("nvml.devices_missing", "ERROR")
    assert finding["evidence"]["missing"] == ["0000:9a:00.0"]


def test_a_device_fewer_than_at_start_is_missing(stubbed_node, codes):
    """Where nobody says how many to expect, the inventory from the agent's start does."""
    known = stubbed_node.ask("inventory")["devices"]
    stubbed_node.state(devices=1)
    assert codes(stubbed_node.ask("nvml", devices=known)) == [("nvml.devices_missing", "ERROR", None)]


def test_a_missing_library_is_found_where_devices_are(node_without_nvml, codes):
    """The bus shows a GPU that cannot be queried."""
    node_without_nvml.plug("0000:10:00.0")
    assert codes(node_without_nvml.ask("nvml")) == [("nvml.library_missing", "UNKNOWN", None)]


@pytest.mark.parametrize("expected_gpus", [None, 0])
def test_no_gpu_where_none_is_expected_is_skipped(node_without_nvml, expected_gpus):
    """A machine without GPUs is no fault, and no pass either."""
    assert node_without_nvml.ask("nvml", expected_gpus) == {"skipped": "no GPU here, none expected"}


def test_a_missing_library_says_nothing_about_the_devices_that_are_expected(node_without_nvml, codes):
    """Nothing was counted: one UNKNOWN finding. Only a bus with some of the devices shows which are missing."""
    unknown = ("nvml.library_missing", "UNKNOWN", None)
    assert codes(node_without_nvml.ask("nvml", expected_gpus=8)) == [unknown]
    node_without_nvml.plug("0000:10:00.0")
    assert codes(node_without_nvml.ask("nvml", expected_gpus=2)) == [unknown, ("nvml.devices_missing", "ERROR", None)]


def test_the_inventory_comes_from_nvml(stubbed_node, node_without_nvml):
    """Devices with identity and memory; without NVML nobody can tell."""
    device = stubbed_node.ask("inventory")["devices"][1]
    assert device == {
        "index": 1,
        "uuid": "GPU-stub-1",
        "model": "NVIDIA H100 80GB HBM3",
        "serial": "1654823000001",
        "pci_address": "0000:11:00.0",
        "memory_bytes": 80 << 30,
        "simulated": False,
    }
    stubbed_node.state(devices=2, unsupported="nvmlDeviceGetSerial")
    assert [device["serial"] for device in stubbed_node.ask("inventory")["devices"]] == [None, None]
    assert node_without_nvml.ask("inventory")["devices"] == []


def test_a_device_that_is_gone_stays_in_the_inventory(stubbed_node, codes):
    """The agent refreshes the inventory again and again, and a missing device must stay in it."""
    known = stubbed_node.ask("inventory")["devices"]
    for gone in ({"devices": 1}, {"devices": 2, "lost": 1}, {"devices": 2, "broken": 9}):
        stubbed_node.state(**gone)
        assert stubbed_node.ask("inventory")["devices"] == known, gone
    stubbed_node.state(devices=1)
    assert codes(stubbed_node.ask("nvml")) == [("nvml.devices_missing", "ERROR", None)]


def test_somebody_elses_process_makes_a_node_busy(stubbed_node):
    """Our own runs do not count as work."""
    assert stubbed_node.ask("probe", own=[])["nvml"] == "IDLE"
    stubbed_node.state(devices=2, process_1=4711)
    assert stubbed_node.ask("probe", own=[])["nvml"] == "BUSY"
    assert stubbed_node.ask("probe", own=[4711])["nvml"] == "IDLE"


def test_idleness_without_nvml_depends_on_the_bus(node_without_nvml):
    """Without devices, nothing can be at work on them. With devices that cannot be queried, the answer is UNKNOWN."""
    assert node_without_nvml.ask("probe", own=[])["nvml"] == "IDLE"
    node_without_nvml.plug("0000:10:00.0")
    assert node_without_nvml.ask("probe", own=[])["nvml"] == "UNKNOWN"
